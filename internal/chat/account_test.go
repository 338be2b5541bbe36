package chat

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stoplog/stoplog/internal/journal"
)

// TestAccounts gives account of some transcripts' runs.
func TestAccounts(t *testing.T) {
	for _, name := range []string{"approval", "blocked", "halted", "superseded", "question"} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			play(t, s, row.Run, filepath.Join("testdata", name+".txt"), -1, journal.Change{Status: journal.Blocked, Reason: "as it was"})
			a, err := AccountOf(t.Context(), s, row.Ref)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			enc := json.NewEncoder(&got)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			if err := enc.Encode(a); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "account", name+".json")
			if *update {
				if err := os.WriteFile(file, got.Bytes(), 0o666); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
