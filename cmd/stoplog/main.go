// Command stoplog governs the text that goes between people, programs and
// language models.
//
// The program is wiring: a command reads its flags, joins rooms of the house
// together and shows what comes of it. Each command has a file of its own, named
// for it, with its flags, its help and its Run; a command enters the program by a
// field of [commands]. How all of them speak is written in voice.go.
package main

import (
	"errors"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"github.com/stoplog/stoplog/internal/journal/sqlite"
	"github.com/stoplog/stoplog/internal/sandbox"
)

func main() {
	sandbox.Main() // a process of a sandbox is this program again
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}

// commands is what the program can do: a field and a file for each.
type commands struct {
	Serve       serveCommand       `cmd:"" help:"Serve providers' interfaces, and judge what goes through."`
	Demo        demoCommand        `cmd:"" help:"Show what a gateway does, with no key and no network."`
	Init        initCommand        `cmd:"" help:"Write a stoplog.yaml that says what is built in."`
	Chat        chatCommand        `cmd:"" help:"Talk to an agent."`
	Run         runCommand         `cmd:"" help:"Run a playbook."`
	Runs        runsCommand        `cmd:"" help:"List and show runs, go on with them, or end them."`
	Why         whyCommand         `cmd:"" help:"Say what a run did, what was decided of it, and why it stopped."`
	Approve     approveCommand     `cmd:"" help:"Say yes to what a run asks."`
	Deny        denyCommand        `cmd:"" help:"Say no to what a run asks."`
	Answer      answerCommand      `cmd:"" help:"Answer what a model asks."`
	SealKey     sealKeyCommand     `cmd:"" help:"Make a key that seals what is kept."`
	Allow       allowCommand       `cmd:"" help:"Let pass something that a rule finds, for some time."`
	Audit       auditCommand       `cmd:"" help:"Check the journal, or give it away."`
	Budget      budgetCommand      `cmd:"" help:"Say what was spent on a day, and what may be."`
	Keys        keysCommand        `cmd:"" help:"Make, list and revoke the keys that callers show."`
	Guard       guardCommand       `cmd:"" help:"Filter stdin to stdout, and replace what must not pass."`
	Lint        lintCommand        `cmd:"" help:"Check playbooks."`
	Explain     explainCommand     `cmd:"" help:"Explain a check, or how to choose a step's type."`
	CheckConfig checkConfigCommand `cmd:"" help:"Check a stoplog.yaml, and show what comes of it."`
	Doctor      doctorCommand      `cmd:"" help:"Say what this machine can enforce."`
	Version     versionCommand     `cmd:"" help:"Say which build this is."`
}

// about is the head of the program's own help.
const about = `Stoplog stands in a stream of text from or to a language model, holds back what must not pass, and says what it did.

The result of a command is on stdout and its talk is on stderr. Exit codes: 0 done, 1 error, 2 usage (or a file that does not check), 3 blocked by policy, 4 waits for a person, 5 out of budget or time.`

// world is what the program has of what is around it.
type world struct {
	stdin  io.Reader
	stdout io.Writer
	voice  voice
	getenv func(string) string
	house  func(w *world, config string, s *sqlite.Store) (house, func() error, error)
}

// run is the program less its process: it returns the exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) int {
	w := &world{stdin: stdin, stdout: stdout, voice: voice{stderr}, getenv: getenv, house: openHouse}

	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("stoplog"),
		kong.Description(about),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { helped = true }), // called once help was printed, and then not obeyed
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 80, Compact: true}),
	)
	if err != nil {
		panic(err) // the grammar is this program's own
	}
	ctx, err := parser.Parse(args)
	if helped {
		return exitDone
	}
	if err != nil {
		return w.voice.fail(misused(err))
	}
	if err := ctx.Run(w); err != nil {
		return w.voice.fail(err)
	}
	return exitDone
}

// misused is a mistake on the command line, with a hint at the help of the
// command that was meant.
func misused(err error) error {
	help := "stoplog --help"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context.Selected() != nil {
		help = commandPath(parse.Context.Selected()) + " --help"
	}
	return failf(exitUsage, "%w", err).hint("see `%s`", help)
}

// commandPath is a command as it is typed, without its arguments and flags.
func commandPath(n *kong.Node) string {
	if n.Parent == nil {
		return n.Name
	}
	if n.Type != kong.CommandNode {
		return commandPath(n.Parent)
	}
	return commandPath(n.Parent) + " " + n.Name
}
