package match_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
)

var tokens = []match.Rule{{
	ID: "acme-token", Pattern: `\bacme_[a-z0-9]{12}\b`, Verdict: guard.Redact,
	Match: []string{"acme_0123456789ab"}, NoMatch: []string{"acme_short"},
}}

// A compiled set of rules as an io.WriteCloser: what may leave is passed on at once.
func Example() {
	engine, err := match.Compile(tokens, match.Options{Name: "acme", Evasions: match.Evasions})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := guard.NewRedactor(os.Stdout, guard.NewChain(guard.Options{}, guard.Member{Guard: engine}))
	for _, piece := range []string{"it is acme_01", "2345\u200b6789a", "b, keep it.\n"} {
		if _, err := io.WriteString(r, piece); err != nil {
			fmt.Println(err)
		}
	}
	if err := r.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: it is [redacted:acme-token], keep it.
}

// A rule that denies ends the text in front of what it found.
func Example_deny() {
	engine, err := match.Compile(tokens, match.Options{Name: "acme", Verdict: guard.Deny})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := guard.NewRedactor(os.Stdout, guard.NewChain(guard.Options{}, guard.Member{Guard: engine}))
	_, err = io.WriteString(r, "it is acme_0123456789ab, keep it.")
	var stop *guard.StopError
	fmt.Println(errors.As(err, &stop), stop)
	// Output: it is true the text was stopped at byte 6: deny by rule acme-token of guard acme
}

// Values that are known are found in every form.
func ExampleLiterals() {
	vault := match.NewLiterals(match.LiteralOptions{Name: "vault"})
	password, err := vault.Add("db-password", "correct horse/battery")
	if err != nil {
		fmt.Println(err)
		return
	}
	chain := guard.NewChain(guard.Options{}, guard.Member{Guard: vault})
	show := func(text string) {
		var out strings.Builder
		r := guard.NewRedactor(&out, chain)
		if _, err := io.WriteString(r, text); err != nil {
			fmt.Println(err)
		}
		if err := r.Close(); err != nil {
			fmt.Println(err)
		}
		fmt.Println(out.String())
	}
	show(`{"dsn": "pw=correct horse\/battery"}`)
	show("Y29ycmVjdCBob3JzZS9iYXR0ZXJ5")
	password.Remove()
	show("correct horse/battery")
	// Output:
	// {"dsn": "pw=[redacted:db-password]"}
	// [redacted:db-password]
	// correct horse/battery
}
