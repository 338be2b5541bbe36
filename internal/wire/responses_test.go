package wire

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// TestCopiesAreFound: what recorded streams say again is found to repeat what
// they said, so that it is not judged again.
func TestCopiesAreFound(t *testing.T) {
	for name, payloads := range recorded(t, OpenAIResponses.Name()) {
		var began []string
		watch := guard.NewChain(guard.Options{}, guard.Member{Guard: openings{&began}})
		s := OpenAIResponses.NewStream(Options{Context: context.Background(), Chain: watch})
		s.Write(serve(OpenAIResponses, payloads))
		s.Close(nil)
		if slices.Sort(began); len(began) == 0 {
			t.Errorf("%s: nothing was judged", name)
		}
		for _, channel := range began {
			if strings.Contains(channel, "/again") || strings.Contains(channel, "unknown") {
				t.Errorf("%s: %s", name, channel)
			}
		}
	}
}

// openings is a guard that notes the channels it is asked to judge.
type openings struct{ names *[]string }

func (openings) Name() string { return "openings" }

func (o openings) Open(_ context.Context, c guard.Channel) guard.Screen {
	*o.names = append(*o.names, c.Name)
	return &silent{}
}

type silent struct{ read int64 }

func (s *silent) Write(p []byte) (guard.Progress, error) {
	s.read += int64(len(p))
	return guard.Progress{Settled: s.read}, nil
}

func (s *silent) Close() (guard.Progress, error) { return guard.Progress{Settled: s.read}, nil }
