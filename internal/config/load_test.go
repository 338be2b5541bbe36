package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/internal/diag"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func save(t *testing.T, file, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestFind adds the candidates from the last to the first.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	home := map[string]string{"HOME": filepath.Join(dir, "home")}
	xdg := maps.Clone(home)
	xdg["XDG_CONFIG_HOME"] = filepath.Join(dir, "xdg")
	find := func(step, want string, vars map[string]string) {
		t.Helper()
		if got := Find("", env(vars)); got != want {
			t.Errorf("%s: found %q, want %q", step, got, want)
		}
	}

	find("nothing is there", "", xdg)
	find("no environment", "", nil)

	inHome := filepath.Join(dir, "home/.config/stoplog/stoplog.yaml")
	save(t, inHome, "version: 1\n")
	find("only HOME", inHome, home)
	find("XDG_CONFIG_HOME stands for ~/.config", "", xdg)
	find("a relative XDG_CONFIG_HOME is ignored", inHome, map[string]string{"HOME": home["HOME"], "XDG_CONFIG_HOME": "xdg"})

	inXDG := filepath.Join(dir, "xdg/stoplog/stoplog.yaml")
	save(t, inXDG, "version: 1\n")
	find("XDG_CONFIG_HOME", inXDG, xdg)

	if err := os.Symlink("nowhere", "stoplog.yaml"); err != nil {
		t.Fatal(err)
	}
	find("what is there and cannot be read is not passed over", "stoplog.yaml", xdg)
	if _, err := Load("stoplog.yaml"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("loading it gives %v, want that it does not exist", err)
	}

	if got := Find("named.yaml", env(xdg)); got != "named.yaml" {
		t.Errorf("found %q, want the file that was named", got)
	}
}

// TestPathsAreRelativeToTheFile reads a file from another folder, whose name is
// full of what is special in a pattern.
func TestPathsAreRelativeToTheFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a*[b]?")
	save(t, filepath.Join(dir, "tapes/one.cassette"), "")
	save(t, filepath.Join(dir, "keys/openai"), "k-1\n")
	file := filepath.Join(dir, "stoplog.yaml")
	save(t, file, `version: 1
upstreams:
  tapes: {protocol: openai, cassettes: [tapes/*.cassette, `+dir+`/tapes/none.cassette]}
  openai: {protocol: openai, base_url: https://a.example/v1, key: file:keys/openai}
`)
	_, err := Load(file)
	var list diag.List
	if !errors.As(err, &list) || len(list) != 1 || list[0].Line != 3 {
		t.Fatalf("got %v, want one error about the absolute pattern", err)
	}

	save(t, file, `version: 1
upstreams:
  tapes: {protocol: openai, cassettes: [tapes/*.cassette]}
  openai: {protocol: openai, base_url: https://a.example/v1, key: file:keys/openai}
`)
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	tapes, _ := c.Upstream("tapes")
	if tapes.BaseURL != "http://cassette.invalid/v1" {
		t.Errorf("base address %q, want one under which OpenAI's paths are /v1/…", tapes.BaseURL)
	}
	if want := filepath.Join(dir, "tapes/one.cassette"); len(tapes.Cassettes) != 1 || tapes.Cassettes[0] != want {
		t.Errorf("cassettes %q, want %q", tapes.Cassettes, want)
	}
	found, err := c.ReadSecrets(env(nil))
	keys := found.Keys
	if err != nil || keys["openai"] != "k-1" || len(keys) != 1 {
		t.Errorf("keys %v, error %v; want the file's content alone", keys, err)
	}
}

func TestReadSecrets(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "good"), " k-file \n")
	save(t, filepath.Join(dir, "empty"), "\n")
	save(t, filepath.Join(dir, "two"), "k-1\nk-2\n")
	file := filepath.Join(dir, "stoplog.yaml")
	c, err := Parse(file, []byte(`version: 1
upstreams:
  none: {protocol: openai, base_url: https://a.example}
  set: {protocol: openai, base_url: https://a.example, key: env:SET}
  unset: {protocol: openai, base_url: https://a.example, key: env:UNSET}
  good: {protocol: openai, base_url: https://a.example, key: file:good}
  empty: {protocol: openai, base_url: https://a.example, key: file:empty}
  two: {protocol: openai, base_url: https://a.example, key: file:two}
  gone: {protocol: openai, base_url: https://a.example, key: file:gone}
  said: {protocol: openai, base_url: https://a.example, key: {command: [echo, " k-said "]}}
  mute: {protocol: openai, base_url: https://a.example, key: {command: ["true"]}}
  long: {protocol: openai, base_url: https://a.example, key: {command: [printf, "k-1\\nk-2"]}}
  fails: {protocol: openai, base_url: https://a.example, key: {command: [sh, -c, "echo k-out; exit 3"]}}
  headed: {protocol: openai, base_url: https://a.example, headers: {Api-Key: file:good, X-B: env:UNSET}, proxy: env:PROXY}
  lost: {protocol: openai, base_url: https://a.example, proxy: env:SET}
`))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.ReadSecrets(env(map[string]string{"SET": "k-env\n", "PROXY": "http://u:k-p@proxy.example:1"}))
	if want := map[string]string{"set": "k-env", "good": "k-file", "said": "k-said"}; !maps.Equal(found.Keys, want) {
		t.Errorf("keys %v, want %v", found.Keys, want)
	}
	if want := map[string]string{"Api-Key": "k-file"}; !maps.Equal(found.Headers["headed"], want) || found.Proxies["headed"] != "http://u:k-p@proxy.example:1" {
		t.Errorf("headers %v, proxies %v", found.Headers, found.Proxies)
	}
	var list diag.List
	if !errors.As(err, &list) || len(list) != 9 {
		t.Fatalf("got %v, want nine that are missing", err)
	}
	for i, want := range []string{
		`:5:63: upstream "unset" has no key: environment variable UNSET is not set`,
		`:7:63: upstream "empty" has no key: file `,
		`:8:61: upstream "two" has no key: file `,
		`:9:62: upstream "gone" has no key: open `,
		`:11:72: upstream "mute" has no key: command true must print it, alone on one line`,
		`:12:72: upstream "long" has no key: command printf must print it, alone on one line`,
		`:13:73: upstream "fails" has no key: command sh: exit status 3`,
		`:14:94: upstream "headed" has no header X-B: environment variable UNSET is not set`,
		`:15:64: upstream "lost" has no proxy: not the URL of a proxy`,
	} {
		if got := list[i].String(); !strings.HasPrefix(got, file+want) || strings.Contains(got, "k-") {
			t.Errorf("got %s, want %s%s…", got, file, want)
		}
	}
}

// TestReadLiterals reads the values that guards look for, and says of one that none
// can be looked for, not what it is.
func TestReadLiterals(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "token"), "t-1234567890\n")
	c, err := Parse(filepath.Join(dir, "stoplog.yaml"), []byte(`version: 1
guards:
  vault: {literals: [env:SET, file:token, env:SHORT, env:UNSET]}
profiles:
  default: {output: {vault: enforce}}
`))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.ReadSecrets(env(map[string]string{"SET": "k-1234567890", "SHORT": "k-12"}))
	want := []Literal{{"env:SET", "k-1234567890"}, {"file:token", "t-1234567890"}, {"env:SHORT", "k-12"}}
	if !slices.Equal(found.Literals["vault"], want) {
		t.Errorf("found %v, want %v", found.Literals, want)
	}
	var list diag.List
	if !errors.As(err, &list) || len(list) != 2 {
		t.Fatalf("got %v, want two that are missing", err)
	}
	for i, want := range []string{
		`:3:43: guard "vault" cannot look for env:SHORT: not a value to look for: it has 4 bytes, and may not have fewer than 8`,
		`:3:54: guard "vault" has no value: environment variable UNSET is not set`,
	} {
		if got := list[i].String(); !strings.HasSuffix(got, want) || strings.Contains(got, "k-12") {
			t.Errorf("got %q, want its end to be %q", got, want)
		}
	}
}
