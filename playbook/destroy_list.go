package playbook

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// destroyer is a kind of command that cannot be taken back.
type destroyer struct {
	programs []string
	// does gives the part of the command that does it, to be shown; empty if this
	// command does not.
	does  func(command) string
	means string
}

// phrases is a destroyer that is recognised by its verbs.
func phrases(all ...string) func(command) string {
	return func(c command) string { return c.says(all...) }
}

// always is a destroyer whatever its arguments.
func always(command) string { return " " }

var destroyers = []destroyer{
	{[]string{"rm", "unlink", "rmdir"}, removes, "deletes files"},
	{[]string{"find"}, func(c command) string {
		if slices.ContainsFunc(c.args, func(a arg) bool { return a.text == "-delete" }) {
			return "-delete"
		}
		return ""
	}, "deletes files"},
	{[]string{"shred", "wipefs", "srm", "blkdiscard"}, always, "destroys data"},
	{[]string{"dd"}, func(c command) string {
		for _, a := range c.args {
			if to, ok := strings.CutPrefix(a.text, "of="); ok && (!a.known || strings.HasPrefix(to, "/dev/") && to != "/dev/null") {
				return a.text
			}
		}
		return ""
	}, "overwrites a disk"},
	{[]string{"mkfs", "mkfs.ext4", "mkfs.ext3", "mkfs.ext2", "mkfs.xfs", "mkfs.btrfs", "mkfs.vfat", "mkswap", "fdisk", "sfdisk", "parted", "lvremove", "vgremove", "pvremove"}, always, "formats a disk"},
	{[]string{"git"}, gitLoses, "loses what others have, or what was not committed"},
	{[]string{"kubectl", "oc"}, phrases("delete", "drain", "replace --force"), "deletes from a cluster"},
	{[]string{"helm", "helmfile"}, phrases("uninstall", "delete", "destroy", "rollback"), "takes a release away"},
	{[]string{"terraform", "tofu", "terragrunt", "cdktf"}, terraformDestroys, "destroys infrastructure"},
	{[]string{"pulumi", "cdk", "sst", "serverless", "sls", "eksctl", "vagrant", "doctl", "flyctl", "fly", "heroku", "linode-cli", "hcloud", "scw", "vercel", "netlify", "wrangler"},
		phrases("destroy", "delete", "remove", "rm", "apps:destroy", "pg:reset"), "destroys what runs"},
	{[]string{"aws"}, awsDestroys, "destroys in the cloud, or changes who may do what"},
	{[]string{"gcloud", "az", "gsutil", "bq", "ibmcloud", "oci", "aliyun"}, cloudDestroys, "destroys in the cloud"},
	{[]string{"docker", "podman", "nerdctl"}, phrases("system prune", "volume rm", "volume prune", "image prune", "container prune", "rm", "rmi", "swarm leave", "stack rm", "compose down"), "deletes containers or what they keep"},
	{[]string{"gh", "glab", "hub"}, phrases("repo delete", "release delete", "secret delete", "secret set", "repo archive", "pr merge", "mr merge"), "changes for all what others rely on"},
	{[]string{"curl", "wget", "http", "https", "httpie", "xh"}, httpDeletes, "asks a server to delete"},
	{[]string{"psql", "mysql", "mariadb", "sqlite3", "sqlcmd", "mysqladmin", "dropdb", "dropuser", "clickhouse-client", "cqlsh", "duckdb", "snowsql", "bq"}, sqlDestroys, "deletes from a database"},
	{[]string{"mongo", "mongosh", "redis-cli", "etcdctl", "rabbitmqctl", "kafka-topics", "kafka-topics.sh", "consul", "nomad"}, storeDestroys, "deletes from a store"},
	{[]string{"vault", "op", "bw"}, phrases("delete", "destroy", "lease revoke", "token revoke", "operator seal", "item delete"), "destroys secrets"},
	{[]string{"npm", "pnpm", "yarn", "cargo", "gem", "twine", "poetry", "uv", "mvn", "gradle", "flit", "hex", "mix", "dotnet", "nuget", "goreleaser", "vsce"},
		phrases("publish", "unpublish", "push", "upload", "yank", "deprecate", "release", "npm publish", "nuget push", "hex.publish", "deploy"), "publishes for good"},
	{[]string{"shutdown", "reboot", "halt", "poweroff", "telinit"}, always, "stops a machine"},
	{[]string{"systemctl", "service"}, phrases("poweroff", "reboot", "halt", "disable", "mask", "isolate"), "stops what runs"},
	{[]string{"iptables", "ip6tables", "nft", "ufw"}, func(c command) string {
		if c.has("-F", "--flush", "-X") {
			return "-F"
		}
		return c.says("flush ruleset", "reset", "disable")
	}, "opens a firewall"},
	{[]string{"userdel", "useradd", "usermod", "groupdel", "groupmod", "passwd", "chpasswd", "deluser", "adduser", "visudo", "gpasswd", "ssh-copy-id", "chage"}, always, "changes an identity"},
	{[]string{"crontab"}, func(c command) string {
		if c.has("-r") {
			return "-r"
		}
		return ""
	}, "deletes a schedule"},
	{[]string{"chmod", "chown", "chgrp"}, func(c command) string {
		if c.has("-R", "--recursive") && slices.ContainsFunc(c.args, func(a arg) bool { return broad(a) }) {
			return "-R"
		}
		return ""
	}, "changes who may read or write all of it"},
	{[]string{"mv"}, func(c command) string {
		if n := len(c.args); n > 1 && c.args[n-1].text == "/dev/null" {
			return "/dev/null"
		}
		return ""
	}, "deletes files"},
	{[]string{"truncate"}, func(c command) string {
		if v := c.value("-s", "--size"); len(v) > 0 && strings.Trim(v[0].text, "0") == "" {
			return "-s 0"
		}
		return ""
	}, "empties files"},
	{[]string{"rsync"}, func(c command) string {
		for _, f := range []string{"--delete", "--delete-before", "--delete-after", "--delete-excluded", "--remove-source-files"} {
			if c.has(f) {
				return f
			}
		}
		return ""
	}, "deletes files"},
	{[]string{"gpg", "gpg2"}, func(c command) string {
		for _, f := range []string{"--delete-keys", "--delete-secret-keys", "--delete-secret-and-public-key"} {
			if c.has(f) {
				return f
			}
		}
		return ""
	}, "deletes keys"},
	{[]string{"stripe", "paypal"}, phrases("charges create", "refunds create", "payouts create", "transfers create", "subscriptions create", "payment_intents create", "payment_intents confirm", "delete"), "moves money"},
	{[]string{"alembic", "flyway", "liquibase", "rails", "rake", "prisma", "knex", "sequelize", "django-admin", "manage.py"}, phrases("downgrade", "clean", "drop-all", "dropall", "db:drop", "db:reset", "db:schema:load", "migrate reset", "db push", "flush", "migrate:rollback", "db:migrate:undo:all"), "deletes from a database"},
}

// removes says of rm that it deletes more than one file below tmp.
func removes(c command) string {
	recursive := c.has("-r", "-R", "--recursive")
	force := c.has("-f", "--force")
	if c.name != "rm" || !recursive && !force {
		return "" // one named file that must be there: what a step that writes does
	}
	for _, a := range c.args {
		if strings.HasPrefix(a.text, "-") && a.known {
			continue
		}
		if !scratch(a) {
			return map[bool]string{true: "-r", false: "-f"}[recursive]
		}
	}
	return ""
}

// scratch says of a path that it is literal and lies below tmp of the root.
func scratch(a arg) bool {
	clean := path.Clean(a.text)
	return a.known && strings.HasPrefix(clean, "tmp/") && !strings.Contains(a.text, "..")
}

// broad says of a path that it is the root, a home, or not known.
func broad(a arg) bool {
	return !a.known || slices.Contains([]string{"/", "/*", "~", ".", "..", "/home", "/etc", "/usr", "/var", "*"}, strings.TrimSuffix(a.text, "/")) || a.text == "/"
}

func gitLoses(c command) string {
	verbs := c.verbs()
	is := func(verb string) bool { return slices.Contains(verbs, verb) }
	switch {
	case is("push"):
		for _, f := range []string{"--force", "--force-with-lease", "--delete", "--mirror", "--prune"} {
			if c.has(f) {
				return "push " + f
			}
		}
		if c.has("-f") {
			return "push -f"
		}
		if c.has("-d") {
			return "push -d"
		}
		for _, a := range c.args {
			if strings.HasPrefix(a.text, "+") || strings.HasPrefix(a.text, ":") && len(a.text) > 1 {
				return "push " + a.text
			}
		}
	case is("reset") && c.has("--hard"):
		return "reset --hard"
	case is("clean") && c.has("-f", "--force"):
		return "clean -f"
	case is("branch") && c.has("-D"):
		return "branch -D"
	case is("tag") && c.has("-d", "--delete"):
		return "tag -d"
	case is("update-ref") && c.has("-d"):
		return "update-ref -d"
	case is("filter-branch"):
		return "filter-branch"
	case is("filter-repo"):
		return "filter-repo"
	case is("reflog") && is("expire"):
		return "reflog expire"
	case is("stash") && (is("clear") || is("drop")):
		return "stash drop"
	}
	return ""
}

func terraformDestroys(c command) string {
	if c.has("-destroy", "--destroy") {
		return "-destroy"
	}
	if c.says("apply") != "" && slices.ContainsFunc(c.args, func(a arg) bool { return strings.Contains(a.text, "auto-approve") }) {
		return "apply -auto-approve"
	}
	return c.says("destroy", "state rm", "workspace delete", "force-unlock", "run-all destroy")
}

var cloudVerb = regexp.MustCompile(`^(delete|terminate|destroy|purge|deregister|revoke|reset|remove)(-|$)`)

func awsDestroys(c command) string {
	if what := c.says("s3 rm", "s3 rb", "iam"); what != "" {
		if what == "iam" && slices.ContainsFunc(c.verbs(), func(v string) bool {
			return strings.HasPrefix(v, "get") || strings.HasPrefix(v, "list")
		}) {
			return ""
		}
		return what
	}
	return cloudDestroys(c)
}

func cloudDestroys(c command) string {
	for _, v := range c.verbs() {
		if cloudVerb.MatchString(v) || v == "rm" || v == "rb" || v == "add-iam-policy-binding" || v == "set-iam-policy" {
			return v
		}
	}
	return ""
}

func httpDeletes(c command) string {
	for _, v := range c.value("-X", "--request", "--method") {
		if strings.EqualFold(v.text, "delete") {
			return "-X DELETE"
		}
	}
	// curl takes -sXDELETE for -s -X DELETE.
	for i, a := range c.args {
		if len(a.text) < 2 || a.text[0] != '-' || a.text[1] == '-' {
			continue
		}
		_, method, ok := strings.Cut(a.text, "X")
		if ok && method == "" && i+1 < len(c.args) {
			method = c.args[i+1].text
		}
		if ok && strings.EqualFold(method, "delete") {
			return "-X DELETE"
		}
	}
	if c.name != "curl" && c.name != "wget" && len(c.verbs()) > 0 && c.verbs()[0] == "delete" {
		return "DELETE"
	}
	return ""
}

var (
	sqlDrop   = regexp.MustCompile(`(?i)\b(drop\s+(table|database|schema|index|view|user|role|column|materialized|type|function|trigger|sequence|tablespace)|truncate\b|alter\s+table\b[^;]*\bdrop\b|(grant|revoke)\b[^;]*\b(to|from)\b|(alter|create)\s+(user|role)\b)`)
	sqlDelete = regexp.MustCompile(`(?i)\b(delete\s+from|update)\b[^;]*`)
	sqlWhere  = regexp.MustCompile(`(?i)\bwhere\b`)
	sqlNotes  = regexp.MustCompile(`(?s)/\*.*?\*/|--[^\n]*`)
	sqlUpdate = regexp.MustCompile(`(?i)^update\b[^;]*\bset\b`)
)

// sqlDestroys looks into the statements that a command is given as arguments.
func sqlDestroys(c command) string {
	if c.name == "dropdb" || c.name == "dropuser" {
		return " "
	}
	for _, a := range c.args {
		text := a.text
		if flag, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(flag, "--") {
			text = value // its dashes begin no comment
		}
		text = sqlNotes.ReplaceAllString(text, " ")
		if m := sqlDrop.FindString(text); m != "" {
			return strings.ToUpper(strings.Join(strings.Fields(m)[:min(2, len(strings.Fields(m)))], " "))
		}
		for _, m := range sqlDelete.FindAllString(text, -1) {
			isDelete := strings.HasPrefix(strings.ToLower(m), "delete")
			if !sqlWhere.MatchString(m) && (isDelete || sqlUpdate.MatchString(m)) {
				return strings.ToUpper(strings.Fields(m)[0]) + " without WHERE"
			}
		}
	}
	if c.name == "mysqladmin" {
		return c.says("drop", "shutdown", "password")
	}
	return ""
}

var storeVerb = regexp.MustCompile(`(?i)\b(drop(Database|Index|Indexes|User|Collection)?\s*\(|deleteMany\s*\(\s*\{\s*\}|remove\s*\(\s*\{?\s*\}?\s*\)|flushall|flushdb|shutdown|reset|delete_(queue|vhost|user)|--delete\b)`)

func storeDestroys(c command) string {
	for _, a := range c.args {
		if m := storeVerb.FindString(a.text); m != "" {
			return strings.TrimRight(m, "({ })")
		}
	}
	return c.says("del", "delete", "kv delete", "job stop", "system gc")
}
