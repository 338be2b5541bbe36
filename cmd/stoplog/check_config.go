package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/diag"
)

type checkConfigCommand struct {
	Config string `placeholder:"FILE" help:"The file to check, in place of the one that would be found."`
	JSON   bool   `help:"Give the result as JSON."`
}

func (*checkConfigCommand) Help() string {
	return `Reads the configuration as serve would, and shows what comes of it: as a file in which nothing is left to defaults, after a list of the guards that do not enforce. What a profile loosens is warned of. What is wrong is shown with its place, all of it at once.

The file is --config, else ./stoplog.yaml, else stoplog/stoplog.yaml in $XDG_CONFIG_HOME or ~/.config, else none: then what is built in is shown. Keys are not read, and no key is shown.

With --json the result is one object: file, config (null if the file does not check), watching, and mistakes and warnings with file, line and col.

Examples:

    stoplog check-config
    stoplog check-config --config deploy/stoplog.yaml --json | jq .mistakes

Exit codes: 0 the file checks, 2 it does not, 1 it can't be read.`
}

// checked is the result of check-config.
type checked struct {
	File     string          `json:"file"`
	Config   json.RawMessage `json:"config"`
	Watching []watching      `json:"watching"`
	Mistakes json.RawMessage `json:"mistakes"`
	Warnings json.RawMessage `json:"warnings"`
}

// watching is a guard that a profile has and that changes nothing there.
type watching struct {
	Profile string `json:"profile"`
	Side    string `json:"side"`
	Guard   string `json:"guard"`
	Mode    string `json:"mode"` // shadow, audit or off
}

func (c *checkConfigCommand) Run(w *world) error {
	file := config.Find(c.Config, w.getenv)
	conf, err := config.Load(file)
	var mistakes diag.List
	if err != nil && !errors.As(err, &mistakes) {
		return failf(exitError, "%w", err).hint("name a file that is there with --config, or leave it out to see what is built in")
	}
	if c.JSON {
		err = writeChecked(w.stdout, file, conf, mistakes)
	} else {
		err = showChecked(w, file, conf, mistakes)
	}
	if err != nil {
		return err
	}
	if len(mistakes) > 0 {
		return failf(exitUsage, "%s does not check: %s", file, count(len(mistakes), "mistake"))
	}
	return nil
}

func showChecked(w *world, file string, conf *config.Config, mistakes diag.List) error {
	if len(mistakes) > 0 {
		return mistakes.WriteText(w.stdout)
	}
	if file == "" {
		w.voice.sayf("no configuration file is found: this is what is built in")
	}
	if err := conf.Warnings.WriteText(w.voice.w); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, g := range watchingGuards(conf) {
		fmt.Fprintf(&out, "# profile %s, %s: guard %s is %s\n", diag.Line(g.Profile), g.Side, diag.Line(g.Guard), modeSays[g.Mode])
	}
	if err := conf.WriteYAML(&out); err != nil {
		return err
	}
	_, err := w.stdout.Write(out.Bytes())
	return err
}

// modeSays is what a mode other than enforce means to who reads the list.
var modeSays = map[string]string{
	"shadow": "in shadow: what it finds is recorded and changes nothing",
	"audit":  "in audit: it judges when the text has ended, and changes nothing",
	off:      "off",
}

const off = "off"

func writeChecked(w io.Writer, file string, conf *config.Config, mistakes diag.List) error {
	result := checked{File: file, Config: json.RawMessage("null"), Watching: []watching{}}
	var warnings diag.List
	if conf != nil {
		var doc bytes.Buffer
		if err := conf.WriteJSON(&doc); err != nil {
			return err
		}
		result.Config = doc.Bytes()
		result.Watching = append(result.Watching, watchingGuards(conf)...)
		warnings = conf.Warnings
	}
	for _, part := range []struct {
		to   *json.RawMessage
		from diag.List
	}{{&result.Mistakes, mistakes}, {&result.Warnings, warnings}} {
		var doc bytes.Buffer
		if err := part.from.WriteJSON(&doc); err != nil {
			return err
		}
		*part.to = doc.Bytes()
	}
	return newEncoder(w).Encode(result)
}

// watchingGuards lists the guards that do not enforce, by profile and side: of
// the guards that there are, declared or built in, those in a lesser mode and
// those left out.
func watchingGuards(conf *config.Config) (all []watching) {
	guards := slices.Clone(conf.Guards)
	for _, g := range config.Builtin().Guards {
		if _, ok := conf.Guard(g.Name); !ok {
			guards = append(guards, g)
		}
	}
	for _, p := range conf.Profiles {
		for _, side := range []struct {
			name string
			uses []config.Use
		}{{"input", p.Input}, {"output", p.Output}} {
			for _, g := range guards {
				if side.name == "input" && g.IsDisclosure() || side.name == "output" && g.IsInjection() {
					continue // there is nothing for it there
				}
				if mode := modeOf(side.uses, g.Name); mode != guard.Enforce.String() {
					all = append(all, watching{p.Name, side.name, g.Name, mode})
				}
			}
		}
	}
	return all
}

func modeOf(uses []config.Use, name string) string {
	for _, u := range uses {
		if u.Guard == name {
			return u.Mode.String()
		}
	}
	return off
}

// count says how many of a thing there are.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
