package playbook

import (
	"slices"
	"strings"
)

// wrappers run the command that their arguments end in. Each has the flags that
// take a value, so that the value is not taken for the command.
var wrappers = map[string][]string{
	"sudo":        {"-u", "-g", "-h", "-p", "-C", "-D", "-R", "-r", "-t", "-T", "-U", "--user", "--group", "--host", "--prompt", "--chdir", "--chroot"},
	"doas":        {"-u", "-C"},
	"env":         {"-u", "-C", "--unset", "--chdir"},
	"nice":        {"-n", "--adjustment"},
	"ionice":      {"-c", "-n", "-p"},
	"nohup":       nil,
	"setsid":      nil,
	"stdbuf":      {"-i", "-o", "-e"},
	"time":        {"-f", "-o"},
	"timeout":     {"-s", "-k", "--signal", "--kill-after"},
	"xargs":       {"-I", "-n", "-P", "-L", "-d", "-a", "-E", "-s", "--max-args", "--max-procs", "--replace", "--delimiter", "--arg-file"},
	"exec":        {"-a"},
	"command":     nil,
	"builtin":     nil,
	"busybox":     nil,
	"toybox":      nil,
	"watch":       {"-n", "--interval"},
	"chroot":      {"--userspec", "--groups"},
	"flock":       {"-w", "-E"},
	"strace":      {"-o", "-e", "-p", "-s"},
	"unshare":     nil,
	"nsenter":     {"-t", "--target"},
	"chronic":     nil,
	"unbuffer":    nil,
	"parallel":    {"-j", "--jobs"},
	"systemd-run": {"-p", "-u", "--unit", "--property"},
}

// operands is how many arguments of a wrapper stand before the command.
var operands = map[string]int{"timeout": 1, "chroot": 1, "flock": 1}

// unwrap gives the commands that a command runs in its turn.
func unwrap(c command) (inner [][]arg, ok bool) {
	switch c.name {
	case "find":
		return findRuns(c), true
	case "ssh":
		return nil, false // its words are a shell's text
	case "docker", "podman", "nerdctl", "kubectl", "oc":
		return containerRuns(c), true
	}
	valued, ok := wrappers[c.name]
	if !ok {
		return nil, false
	}
	rest := c.args
	if c.name == "xargs" || c.name == "parallel" {
		rest = append(slices.Clone(rest), arg{}) // what it reads
	}
	skip := operands[c.name]
	for len(rest) > 0 {
		a := rest[0].text
		switch {
		case a == "--":
			rest = rest[1:]
			return [][]arg{drop(rest, skip)}, true
		case strings.HasPrefix(a, "-") && slices.Contains(valued, a):
			rest = drop(rest, 2)
		case strings.HasPrefix(a, "-"):
			rest = rest[1:]
		case assigns(c.name, a):
			rest = rest[1:]
		case skip > 0:
			rest, skip = rest[1:], skip-1
		default:
			return [][]arg{rest}, true
		}
	}
	return nil, true
}

// assigns says of an argument of env or sudo that it is NAME=VALUE.
func assigns(program, a string) bool {
	name, _, ok := strings.Cut(a, "=")
	return ok && (program == "env" || program == "sudo") && envName.MatchString(name)
}

func drop(args []arg, n int) []arg { return args[min(n, len(args)):] }

// findRuns gives the commands of find's -exec and its kind.
func findRuns(c command) (inner [][]arg) {
	for i, a := range c.args {
		if a.text != "-exec" && a.text != "-execdir" && a.text != "-ok" && a.text != "-okdir" {
			continue
		}
		end := i + 1
		for end < len(c.args) && c.args[end].text != ";" && c.args[end].text != "+" {
			end++
		}
		inner = append(inner, c.args[i+1:end])
	}
	return inner
}

// containerRuns gives the commands that may be what is run in a container: every
// tail of the arguments behind exec or run, since which flags take a value is
// not known here.
func containerRuns(c command) (inner [][]arg) {
	at := slices.IndexFunc(c.args, func(a arg) bool { return a.text == "exec" || a.text == "run" })
	if at < 0 {
		return nil
	}
	for i := at + 1; i < len(c.args) && i <= at+16; i++ {
		if a := c.args[i]; a.known && !strings.HasPrefix(a.text, "-") {
			inner = append(inner, c.args[i:])
		}
	}
	return inner
}

var shells = []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish"}

// shellTexts gives the texts that a command has a shell read. One that is not
// known as a whole has what is known of it.
func (c command) shellTexts() (texts []arg) {
	join := func(args []arg) {
		words, known := make([]string, len(args)), true
		for i, a := range args {
			words[i], known = a.text, known && a.known
		}
		texts = append(texts, arg{strings.Join(words, " "), known})
	}
	switch {
	case slices.Contains(shells, c.name):
		for i, a := range c.args {
			// -c, also as in -ec; the text is the next word that is no flag.
			if len(a.text) > 1 && a.text[0] == '-' && a.text[1] != '-' && strings.Contains(a.text, "c") {
				for _, b := range c.args[i+1:] {
					if !strings.HasPrefix(b.text, "-") {
						texts = append(texts, b)
						break
					}
				}
			}
		}
	case c.name == "su" || c.name == "script" || c.name == "runuser":
		texts = append(texts, c.value("-c", "--command")...)
	case c.name == "eval" || c.name == "watch" || c.name == "parallel":
		join(c.args)
	case c.name == "ssh":
		// What follows the host is read by a shell there. Which flags take a value:
		// those of ssh(1).
		args := c.args
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			n := 1
			if len(args[0].text) == 2 && strings.Contains("BbcDEeFIiJLlmOopQRSWw", args[0].text[1:]) {
				n = 2
			}
			args = drop(args, n)
		}
		if len(args) > 1 {
			join(args[1:])
		}
	case c.name == "env":
		texts = append(texts, c.value("-S", "--split-string")...)
	}
	return texts
}
