package govern_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// callSites are the places on which law 1 rests (one door): where a guard is
// asked, and where what it says is kept before it shows. For each stands the
// test that fails when it is taken out; that was tried by hand for every line.
// Whoever moves a place moves its line, and tries again.
var callSites = []struct{ what, file, source, test string }{
	{"requests are judged", "places.go", "Chain: c.profile.input,", "TestDeniedInput"},
	{"placeholders stand for values", "places.go", "opt.Stand = c.places", "TestCodingAgent"},
	{"values come back in answers", "transport.go", "Restore: c.restore,", "TestRestored"},
	{"values are the caller's own", "places.go", "conversation(c.who(), c.profile.Name, \"named\"", "TestRestoredToTheSameCaller"},
	{"values are the request's own", "places.go", "return wire.NewPlaceholders(p.used), nil", "TestRestoredToTheSameCaller"},
	{"streamed answers are judged", "stream.go", "b.stream.Write(c.data)", "TestSplitCases"},
	{"unstreamed answers are judged", "transport.go", "v := judge(opt, doc)", "TestPlantedSecret"},
	{"answers are judged by the profile's guards", "transport.go", "Chain: c.profile.output,", "TestWatch"},
	{"headers are judged", "http.go", "c.profile.output.Open(c.ctx, guard.Channel{Name: channel, Kind: guard.Field})", "TestHeaders"},
	{"headers that are not known stay behind", "http.go", "range returned", "TestHeaders"},
	{"the list of models holds", "transport.go", "!c.profile.allows(asked.Model) {", "TestRedactedInput"},
	{"spend is reserved before the call", "transport.go", "if refusal, err := c.reserve(); err != nil || refusal != nil {", "TestBudgetExceededBeforeTheCall"},
	{"a key is held to its rate", "transport.go", "if refusal, err := c.begin(); err != nil || refusal != nil {", "TestRate"},
	{"an answer's spend is followed", "stream.go", "b.call.reach(b.stream.Spent())", "TestBudgetRunsOutMidStream"},
	{"what was reserved is settled", "transport.go", "s.Cost = c.debit(o.Usage)", "TestBudgetIsSettled"},
	{"data goes where its class may", "transport.go", "allowed, more := c.judgeClass()", "TestEgress"},
	{"calls in answers are held to rules", "transport.go", "Calls: c.profile.calls(),", "TestCallRules"},
	{"calls of a session are held to conditions", "session_decision.go", "s.profile.ruling(c.Tool, args)", "TestToolClauses"},
	{"other paths are refused", "routes.go", "return route{}, false", "TestNothingAsked"},
	{"the gateway refuses them too", "../internal/gateway/gateway.go", "!govern.Serves(m.Protocol, r.Method,", "TestBadRequests"},
	{"profiles that no mount names are refused", "../internal/gateway/gateway.go", "!slices.Contains(profiles, name) {", "TestBadRequests"},
	{"verdicts on requests are recorded before the call", "transport.go", "facts...); err != nil", "TestRecordedBeforeItShows"},
	{"verdicts on streams are recorded before they show", "stream.go", "if err := b.call.keepVerdicts(b.stream.Decisions()); err != nil {", "TestRecordedBeforeItShows"},
	{"verdicts on answers are recorded before they show", "transport.go", "if err := c.keepVerdicts(v.Decisions); err != nil {", "TestRecordedBeforeItShows"},
	{"a stream is settled before its end shows", "stream.go", "if err := b.call.settle(o); err != nil {", "TestNotRecorded"},
	{"a verdict waits for the disk", "record.go", "err == nil && urgent", "TestVerdictsWaitForTheDisk"},
	{"a stream that is not recorded is cut", "../internal/gateway/gateway.go", "panic(http.ErrAbortHandler) // cut the connection", "TestNotRecorded"},
}

// TestCallSites keeps the list true: each place and each test is there.
func TestCallSites(t *testing.T) {
	var tests strings.Builder
	for _, dir := range []string{".", "../internal/gateway"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			tests.WriteString(read(t, f))
		}
	}
	for _, s := range callSites {
		if n := strings.Count(read(t, s.file), s.source); n != 1 {
			t.Errorf("%s: %q stands %d times in %s", s.what, s.source, n, s.file)
		}
		if !strings.Contains(tests.String(), "\nfunc "+s.test+"(t *testing.T) {") {
			t.Errorf("%s: there is no %s", s.what, s.test)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
