package rules_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

var (
	corpus = flag.String("corpus", "", "files and folders, between commas, in which TestPrecision counts findings")
	listed = flag.Int("listed", 20, "how many findings of each rule TestPrecision shows")
)

// most is how many findings there may be in a megabyte of Go's own packages below.
// They hold no secret, and addresses of authors and of RFCs.
var most = map[string]float64{"secrets": 1, "credentials": 1, "pii": 12, "injection": 1}

// TestPrecision counts what each rule finds in a megabyte of a corpus, and shows
// the findings, for somebody to read them. Without a corpus it reads some packages
// of Go's library, in which packs may find only so much.
//
//	go test ./guard/rules -run TestPrecision -v -corpus $(go env GOROOT)/src
func TestPrecision(t *testing.T) {
	folders := strings.Split(*corpus, ",")
	if *corpus == "" {
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		folders = nil
		for _, name := range []string{"encoding", "os", "sort", "strings"} {
			folders = append(folders, filepath.Join(strings.TrimSpace(string(root)), "src", name))
		}
	}
	e := engine(t, match.DefaultHoldLimit, rules.Names()...)
	packOf := map[string]string{}
	for _, name := range rules.Names() {
		rs, _ := rules.Pack(name)
		for _, r := range rs {
			packOf[r.ID] = name
		}
	}
	found, size := map[string][]string{}, 0
	for _, root := range folders {
		size += readCorpus(t, root, func(name string, text []byte) {
			for _, f := range findings(t, e, text) {
				from, to := max(0, int(f.Start)-40), min(len(text), int(f.End)+20)
				shown := fmt.Sprintf("%s: %q", name, string(text[from:f.Start])+"⟦"+string(text[f.Start:f.End])+"⟧"+string(text[f.End:to]))
				found[f.Rule] = append(found[f.Rule], shown)
			}
		})
	}
	mb := float64(size) / 1e6
	packs := map[string]int{}
	for id, all := range found {
		packs[packOf[id]] += len(all)
	}
	for _, name := range rules.Names() {
		t.Logf("pack %-12s %6d findings in %.1f MB: %.2f a MB", name, packs[name], mb, float64(packs[name])/mb)
		if *corpus == "" && float64(packs[name]) > most[name]*mb {
			t.Errorf("pack %s finds %d in %.1f MB of Go's library, want at most %v a MB", name, packs[name], mb, most[name])
		}
	}
	ids := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return cmp.Compare(len(found[b]), len(found[a])) })
	for _, id := range ids {
		t.Logf("%-30s %-12s %6d: %.2f a MB", id, packOf[id], len(found[id]), float64(len(found[id]))/mb)
		step := max(1, len(found[id])/max(1, *listed))
		for i := 0; i < len(found[id]) && i/step < *listed; i += step {
			t.Logf("    %.300s", found[id][i])
		}
	}
}

// findings are those of a text whose end is known.
func findings(t *testing.T, g guard.Guard, text []byte) (all []guard.Finding) {
	t.Helper()
	take := func(p guard.Progress, err error) {
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Findings {
			if f.End != guard.Open {
				all = append(all, f)
			}
		}
	}
	s := g.Open(t.Context(), guard.Channel{})
	for at := 0; at < len(text); at += 4096 {
		take(s.Write(text[at:min(at+4096, len(text))]))
	}
	take(s.Close())
	return all
}

// readCorpus gives the text files of a folder, and their size. What is no text is
// left out.
func readCorpus(t *testing.T, root string, do func(name string, text []byte)) (size int) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return err
		}
		size += len(text)
		name, _ := filepath.Rel(root, path)
		do(name, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
