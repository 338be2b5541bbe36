package stoplog_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// rooms is the plan of the house: what each package may import. Arrows point
// down only: a room names the rooms below it that it may use, and the modules of
// others that it may use. A package without an entry fails, and so does an entry
// without a package.
//
// Beyond this table every room may use the standard library, and every test may
// use any room but cmd's, and the modules in testModules.
var rooms = map[string]room{
	".": {},

	"guard":                {},
	"guard/match":          {rooms: []string{"guard"}},
	"guard/guardtest":      {rooms: []string{"guard"}},
	"guard/disclosure":     {rooms: []string{"guard"}},
	"guard/inline":         {rooms: []string{"guard"}},
	"guard/rules/gitleaks": {rooms: []string{"guard", "guard/match"}},
	"guard/rules":          {rooms: []string{"guard", "guard/match", "guard/rules/gitleaks"}},

	"internal/budget": {rooms: []string{"internal/glob"}},
	"internal/budget/budgettest": {
		rooms:   []string{"internal/budget"},
		modules: []string{"github.com/google/go-cmp"},
	},
	"internal/diag":   {},
	"internal/signal": {},
	"internal/run":    {rooms: []string{"internal/signal"}},
	"internal/approval": {
		rooms:   []string{"internal/journal"},
		modules: []string{"github.com/go-json-experiment/json"},
	},
	"internal/allowance": {rooms: []string{"guard", "internal/journal"}},
	"internal/engine":    {rooms: []string{"internal/approval", "internal/journal", "internal/run", "internal/signal"}},
	"internal/engine/deferred": {
		rooms:   []string{"internal/journal"},
		modules: []string{"github.com/riverqueue/river"},
	},
	"internal/journal": {
		rooms:   []string{"internal/budget"},
		modules: []string{"github.com/go-json-experiment/json", "github.com/oklog/ulid"},
	},
	"internal/journal/sqlite": {
		rooms:   []string{"internal/auth", "internal/budget", "internal/journal", "internal/seal"},
		modules: []string{"github.com/pressly/goose", "modernc.org/sqlite"},
	},
	"internal/seal": {},
	"internal/journal/journaltest": {
		rooms:   []string{"internal/journal"},
		modules: []string{"github.com/google/go-cmp"},
	},
	"internal/sse":  {},
	"internal/dial": {},
	"internal/cassette": {
		rooms:   []string{"guard", "internal/diag", "internal/wire"},
		modules: []string{"github.com/oklog/ulid/v2"},
	},
	"internal/wire": {rooms: []string{"guard", "internal/sse"}},
	"internal/sandbox": {modules: []string{
		"github.com/elastic/go-seccomp-bpf", "github.com/landlock-lsm/go-landlock", "golang.org/x/sys",
	}},
	"internal/tool": {rooms: []string{"internal/sandbox"}, modules: []string{
		"github.com/go-json-experiment/json", "github.com/santhosh-tekuri/jsonschema/v6",
	}},
	"internal/secret": {},
	"internal/auth":   {},
	"internal/glob":   {},
	"internal/policy": {
		rooms:   []string{"internal/glob", "internal/tool"},
		modules: []string{"cel.dev/cel-go", "github.com/go-json-experiment/json"},
	},
	"internal/config": {
		rooms: []string{"guard", "guard/disclosure", "guard/match", "guard/rules", "internal/budget", "internal/diag", "internal/policy", "internal/secret", "internal/tool", "internal/yamltree"},
	},

	"internal/yamltree": {rooms: []string{"internal/diag"}, modules: []string{"github.com/goccy/go-yaml"}},
	"internal/prompt":   {rooms: []string{"internal/diag", "internal/yamltree"}, modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"playbook": {
		rooms:   []string{"guard", "guard/disclosure", "guard/inline", "guard/match", "guard/rules", "internal/diag", "internal/prompt", "internal/yamltree"},
		modules: []string{"cel.dev/cel-go", "mvdan.cc/sh/v3"},
	},

	"govern": {
		rooms: []string{
			"guard", "guard/disclosure", "guard/match", "guard/rules", "internal/budget",
			"internal/dial", "internal/glob", "internal/policy", "internal/sse", "internal/tool", "internal/wire",
		},
		modules: []string{
			"github.com/andybalholm/brotli", "github.com/go-json-experiment/json", "github.com/klauspost/compress/zstd",
			"github.com/oklog/ulid/v2",
		},
	},

	"internal/llm": {rooms: []string{"govern", "internal/dial", "internal/sse"}},

	"internal/judge": {rooms: []string{"govern", "guard", "internal/llm"}},

	"internal/gateway": {rooms: []string{"govern", "guard", "internal/auth", "internal/sse", "internal/wire"}},

	"internal/chat":       {rooms: []string{"internal/budget", "internal/journal", "internal/run", "internal/signal"}},
	"internal/requestlog": {rooms: []string{"govern", "guard", "internal/journal"}},
	"internal/keep":       {rooms: []string{"govern", "internal/approval", "internal/journal"}},
	"internal/agent": {
		rooms: []string{
			"govern", "guard", "guard/disclosure", "internal/approval", "internal/chat", "internal/engine", "internal/journal", "internal/llm", "internal/run",
			"internal/signal", "internal/tool",
		},
		modules: []string{"github.com/go-json-experiment/json"},
	},
	"internal/api": {rooms: []string{
		"internal/approval", "internal/auth", "internal/budget", "internal/chat", "internal/diag", "internal/flow", "internal/journal", "internal/run", "internal/sse",
	}},

	"internal/notify":     {},
	"internal/flow/steps": {rooms: []string{"internal/run", "internal/signal"}},
	"internal/flow": {
		rooms: []string{
			"guard", "internal/approval", "internal/chat", "internal/engine", "internal/flow/steps", "internal/journal",
			"internal/prompt", "internal/run", "internal/sandbox", "internal/signal", "playbook",
		},
		modules: []string{"cel.dev/cel-go"},
	},

	"internal/flow/claude": {
		rooms: []string{
			"govern", "internal/flow", "internal/flow/steps", "internal/gateway", "internal/llm", "internal/sandbox", "internal/signal",
		},
		modules: []string{"github.com/santhosh-tekuri/jsonschema/v6"},
	},

	"examples": {},

	// Adapters are imported here and nowhere else.
	"cmd/stoplog": {
		rooms: []string{
			"examples", "govern", "guard", "guard/disclosure", "guard/match", "guard/rules",
			"internal/agent", "internal/allowance", "internal/api", "internal/approval", "internal/auth", "internal/budget", "internal/cassette", "internal/chat", "internal/config",
			"internal/diag", "internal/dial", "internal/engine", "internal/engine/deferred", "internal/flow", "internal/flow/claude",
			"internal/flow/steps", "internal/gateway", "internal/journal",
			"internal/journal/sqlite", "internal/judge", "internal/keep", "internal/notify", "internal/prompt", "internal/requestlog", "internal/run", "internal/sandbox", "internal/seal", "internal/signal", "internal/sse",
			"internal/wire", "playbook",
		},
		modules: []string{"github.com/alecthomas/kong", "github.com/riverqueue/river/riverdriver/riversqlite", "github.com/mattn/go-isatty"},
	},
}

// testModules are the modules that any test may use, and nothing else.
var testModules = []string{
	"github.com/google/go-cmp",
	"github.com/rogpeppe/go-internal",
	"go.uber.org/goleak",
	"golang.org/x/text",
	"golang.org/x/tools",
	"pgregory.net/rapid",
}

// archRules are the rules of the house. Each is a function from a tree of source
// to what is wrong with it, so that a fixture can break it.
var archRules = map[string]func(*house, map[string]room) []string{
	"imports": checkImports,
	"onedoor": checkOneDoor,
	"names":   checkNames,
	"size":    checkSize,
	"tour":    checkTour,
}

func TestArchitecture(t *testing.T) {
	h := readHouse(t, os.DirFS("."))
	for name, rule := range archRules {
		t.Run(name, func(t *testing.T) {
			for _, v := range rule(h, rooms) {
				t.Error(v)
			}
		})
	}
}

// TestArchitectureFixtures shows that each rule can fail. A fixture is a small
// tree, testdata/arch/RULE/CASE.txtar, whose comment lists what its rule says of
// it, one `want:` a line; `may:` lines are its plan, as in rooms. A fixture
// without a `want:` is a tree that the rule lets pass.
func TestArchitectureFixtures(t *testing.T) {
	for name, rule := range archRules {
		files, err := fs.Glob(os.DirFS("."), path.Join("testdata/arch", name, "*.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		broken := 0
		for _, file := range files {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/arch/"), ".txtar"), func(t *testing.T) {
				archive, err := txtar.ParseFile(file)
				if err != nil {
					t.Fatal(err)
				}
				tree, err := txtar.FS(archive)
				if err != nil {
					t.Fatal(err)
				}
				plan, want := readFixture(t, string(archive.Comment))
				if len(want) > 0 {
					broken++
				}
				got := rule(readHouse(t, tree), plan)
				if !slices.Equal(got, want) {
					t.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
				}
			})
		}
		if broken == 0 {
			t.Errorf("no fixture breaks rule %s", name)
		}
	}
}

// readFixture reads a fixture's comment: a plan and the expected violations.
func readFixture(t *testing.T, comment string) (map[string]room, []string) {
	t.Helper()
	plan := map[string]room{}
	var want []string
	for line := range strings.Lines(comment) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "want":
			want = append(want, rest)
		case "may":
			// may: ROOM -> ROOM MODULE …
			from, to, _ := strings.Cut(rest, " ->")
			var r room
			for _, name := range strings.Fields(to) {
				if strings.Contains(strings.SplitN(name, "/", 2)[0], ".") {
					r.modules = append(r.modules, name)
				} else {
					r.rooms = append(r.rooms, name)
				}
			}
			plan[from] = r
		}
	}
	return plan, want
}
