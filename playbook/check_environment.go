package playbook

import (
	"slices"
	"strings"
)

var environmentCheck = &CheckDoc{
	ID: "environment", Summary: "a variable that changes which code a program runs",
	Explain: `LD_PRELOAD and its kind make a program load other code, BASH_ENV and its kind make an interpreter run a file first, GIT_SSH_COMMAND and its kind name a program to start. With one of them a step runs something else than the file says.`,
	run: func(l *linter) {
		for _, s := range l.Steps {
			for _, v := range s.Env {
				if redirects(v.Name.Value) {
					l.errorf(v.Name.Span, "remove it", "variable %s makes a program run other code than its own", v.Name.Value)
				}
			}
		}
	},
}

var redirecting = []string{
	"BASH_ENV", "ENV", "ZDOTDIR", "PYTHONSTARTUP", "PYTHONPATH", "PYTHONHOME", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "NODE_OPTIONS", "NODE_PATH",
	"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_CONFIG_COUNT", "GIT_CONFIG_GLOBAL",
	"PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "IFS", "EDITOR", "VISUAL", "PAGER", "LESSOPEN", "GCONV_PATH",
}

func redirects(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || slices.Contains(redirecting, name)
}
