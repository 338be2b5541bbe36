package main

import (
	"fmt"
	"strings"

	"github.com/stoplog/stoplog/internal/config"
	"github.com/stoplog/stoplog/internal/seal"
)

type sealKeyCommand struct {
	To   string `placeholder:"FILE" help:"Add it to this file, which is made, for its owner alone, if it is not there."`
	JSON bool   `help:"Give the id of the key as JSON; with --to."`
}

func (*sealKeyCommand) Help() string {
	return `Makes a key to seal with: 32 random bytes, as a line of 64 hex digits. With a key what the journal holds of anybody's words lies in its file encrypted, and answers can wait there for a person.

Name it in stoplog.yaml, in one of these ways:

    seal: {key: file:stoplog.seal}
    seal: {key: env:STOPLOG_SEAL_KEY}
    seal: {key: "command:pass show stoplog/seal"}

To change the key add another one: the last line seals, and those before it open what they have sealed. Keep the file apart from copies of the journal; without it nothing that was sealed can be read again.

Examples:

    stoplog seal-key --to stoplog.seal
    stoplog seal-key | pass insert -m stoplog/seal

Exit codes: 0 made, 1 it could not be written, 2 usage.`
}

func (c *sealKeyCommand) Run(w *world) error {
	if c.To == "" {
		if c.JSON {
			return failf(exitUsage, "--json gives the id of a key in a file").hint("name the file with --to")
		}
		_, err := fmt.Fprint(w.stdout, seal.NewKey())
		return err
	}
	ring, err := seal.AddKey(c.To)
	if err != nil {
		return failf(exitError, "%w", err)
	}
	w.voice.sayf("%s holds %s; the last one, %s, seals", c.To, count(len(ring.IDs()), "key"), ring.ID())
	if c.JSON {
		return newEncoder(w.stdout).Encode(map[string]string{"file": c.To, "id": ring.ID()})
	}
	return tell(w, "%s", ring.ID())
}

// sealRing reads the keys of a configuration that seal; nil if it names none.
// In a file they stand on lines; elsewhere they are words of one.
func sealRing(conf *config.Config, getenv func(string) string) (*seal.Ring, error) {
	switch k := conf.Seal; {
	case k.IsZero():
		return nil, nil
	case k.File != "":
		return seal.ReadFile(k.File)
	default:
		text, err := k.Read(getenv)
		if err != nil {
			return nil, fmt.Errorf("read the seal key: %w", err)
		}
		ring, err := seal.Parse([]byte(strings.Join(strings.Fields(text), "\n")))
		if err != nil {
			return nil, fmt.Errorf("seal key of %s: %w", k, err)
		}
		return ring, nil
	}
}

// hostRing is sealRing for who writes: without the keys that are named it does not
// start.
func hostRing(w *world, conf *config.Config) (*seal.Ring, error) {
	ring, err := sealRing(conf, w.getenv)
	if err != nil {
		return nil, failf(exitError, "%w", err).hint("see `stoplog seal-key --help`")
	}
	return ring, nil
}

// readerRing is sealRing for who reads a journal that may belong to no
// configuration: what cannot be opened then says so where it is read.
func (f journalFlags) readerRing(w *world) (*seal.Ring, error) {
	conf, err := config.Load(config.Find("", w.getenv))
	if err != nil && f.Store == "" {
		return nil, failf(exitUsage, "%w", err).hint("name a journal with --store")
	}
	if err == nil {
		var ring *seal.Ring
		if ring, err = sealRing(conf, w.getenv); err == nil {
			return ring, nil
		}
	}
	w.voice.sayf("what is sealed is not read: %v", err)
	return nil, nil
}
