package playbook

import (
	"path"
	"slices"
	"strings"
)

var interpreterCheck = &CheckDoc{
	ID: "interpreter", Summary: "a program in can_run that runs what it can read",
	Explain: `can_run is what the kernel lets a step start. A shell, an interpreter, a build tool, or a program that starts others (env, xargs, find, git) does what a text tells it: with it in can_run, the list bounds nothing but what can be read. A dynamic loader starts any program that can be read. A warning: it may be what you want, and then can_read and can_write are the bound.`,
	run: func(l *linter) {
		for _, s := range l.scopes() {
			for _, t := range s.CanRun.Value {
				switch name := path.Base(t.Value); {
				case strings.ContainsAny(name, "*?["):
					l.warnf(t.Span, "name each program", "can_run: %q lets the step run whatever is there, also what it wrote", t.Value)
				case loader(name):
					l.warnf(t.Span, "name the program itself", "can_run: %q is a loader: it runs any program that it can read", t.Value)
				case interprets(name):
					l.warnf(t.Span, "name the programs that it would run, if there are few", "can_run: %q runs what it can read: this list bounds nothing beside it", t.Value)
				}
			}
		}
	},
}

func loader(name string) bool {
	return strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || strings.HasPrefix(name, "ld.so") ||
		strings.HasPrefix(name, "ld-2.") || name == "ld64.so.2"
}

// interpreters run a text, or another program that a text or an argument names.
var interpreters = []string{
	"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "busybox", "toybox", "pwsh", "powershell",
	"python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "luajit", "tclsh", "guile", "Rscript", "julia",
	"awk", "gawk", "mawk", "nawk", "sed", "ed", "vi", "vim", "nvim", "emacs", "java", "dotnet", "osascript", "expect",
	"make", "gmake", "ninja", "cmake", "just", "task", "npm", "npx", "yarn", "pnpm", "cargo", "go", "gradle", "mvn", "pip", "uv", "bundle", "rake",
	"env", "xargs", "find", "nice", "nohup", "timeout", "time", "setsid", "stdbuf", "watch", "parallel", "script", "flock", "strace", "ltrace", "gdb",
	"sudo", "su", "doas", "chroot", "unshare", "nsenter", "ssh", "git", "tar", "rsync", "docker", "podman", "kubectl", "systemd-run", "at", "crontab",
}

// interprets knows python3.12 for python, and sh for a path that ends in it.
func interprets(name string) bool {
	name = strings.TrimSuffix(name, ".exe")
	if slices.Contains(interpreters, name) {
		return true
	}
	bare := strings.TrimRight(name, "0123456789.-")
	return bare != name && slices.Contains(interpreters, bare)
}

// interpretsAs knows python3.12 for python.
func interpretsAs(name, bare string) bool { return strings.TrimRight(name, "0123456789.-") == bare }
