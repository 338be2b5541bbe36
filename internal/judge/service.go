package judge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/stoplog/stoplog/guard"
)

// Service asks a service over HTTP. What is sent and what must come back stands in
// docs/judges.md:
//
//	POST URL
//	{"v": 1, "guard": NAME, "channel": {"name", "side", "kind", "role", "tool"},
//	 "before": TEXT, "text": TEXT}
//
//	200, application/json
//	{"findings": [{"rule", "start", "end", "verdict", "severity"}]}
//
// A call that failed in a way that may pass (no connection, 429, 5xx) is made again
// as long as its context lasts, at most Retries times.
type Service struct {
	Name      string // of the guard
	URL       string
	Header    http.Header // sent with each call
	Transport http.RoundTripper
	Retries   int
}

// maxServiceAnswer is the largest answer taken, in bytes.
const maxServiceAnswer = 1 << 20

type serviceChannel struct {
	Name string `json:"name"`
	Side string `json:"side"`
	Kind string `json:"kind"`
	Role string `json:"role"`
	Tool string `json:"tool"`
}

// Ask implements [Asker].
func (s *Service) Ask(ctx context.Context, q Question) ([]Finding, error) {
	body, err := json.Marshal(struct {
		V       int            `json:"v"`
		Guard   string         `json:"guard"`
		Channel serviceChannel `json:"channel"`
		Before  string         `json:"before"`
		Text    string         `json:"text"`
	}{1, s.Name, serviceChannel{q.Channel.Name, q.Channel.Side.String(), q.Channel.Kind.String(), q.Channel.Role, q.Channel.Tool}, q.Before, q.Text})
	if err != nil {
		return nil, err
	}
	var found []Finding
	err = retrying(ctx, s.Retries, func() (again bool, err error) {
		found, again, err = s.call(ctx, body, q.Text)
		return again, err
	})
	return found, err
}

func (s *Service) call(ctx context.Context, body []byte, text string) (found []Finding, again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(body))
	if err != nil {
		return nil, false, errors.New("the service's URL is none")
	}
	for name, values := range s.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	resp, err := s.Transport.RoundTrip(req)
	if err != nil {
		return nil, true, fmt.Errorf("call the service: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500, fmt.Errorf("the service answered %d", resp.StatusCode)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" {
		return nil, false, errors.New("the service answered with something that is not application/json")
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxServiceAnswer+1))
	switch {
	case err != nil:
		return nil, true, fmt.Errorf("read the service's answer: %w", err)
	case len(doc) > maxServiceAnswer:
		return nil, false, fmt.Errorf("the service's answer is larger than %d bytes", maxServiceAnswer)
	}
	found, err = parseFindings(doc, text)
	return found, false, err
}

// parseFindings reads an answer, strictly: what is not known may have been meant
// to matter.
func parseFindings(doc []byte, text string) ([]Finding, error) {
	var answer struct {
		Findings *[]struct {
			Rule     string `json:"rule"`
			Start    *int   `json:"start"`
			End      *int   `json:"end"`
			Verdict  string `json:"verdict"`
			Severity string `json:"severity"`
		} `json:"findings"`
	}
	if err := strictly(doc, &answer); err != nil {
		return nil, fmt.Errorf("the answer is not in its form: %w", err)
	}
	if answer.Findings == nil {
		return nil, errors.New(`the answer has no member "findings"`)
	}
	var found []Finding
	for i, f := range *answer.Findings {
		out := Finding{Rule: f.Rule, End: len(text), Severity: guard.Medium}
		if f.Start != nil {
			out.Start = *f.Start
		}
		if f.End != nil {
			out.End = *f.End
		}
		var err error
		if out.Verdict, err = guard.ParseVerdict(f.Verdict); err != nil {
			return nil, fmt.Errorf("finding %d: %w", i, err)
		}
		if f.Severity != "" {
			if out.Severity, err = guard.ParseSeverity(f.Severity); err != nil {
				return nil, fmt.Errorf("finding %d: %w", i, err)
			}
		}
		if !ruleName(f.Rule) {
			return nil, fmt.Errorf("finding %d: its rule is no name of letters, digits and . _ -, of at most 64", i)
		}
		found = append(found, out.toRunes(text))
	}
	return found, nil
}

// toRunes widens a finding to whole runes: half a one can be neither replaced nor
// let out.
func (f Finding) toRunes(text string) Finding {
	for f.Start > 0 && f.Start < len(text) && !utf8.RuneStart(text[f.Start]) {
		f.Start--
	}
	for f.End > 0 && f.End < len(text) && !utf8.RuneStart(text[f.End]) {
		f.End++
	}
	return f
}

// ruleName reports whether a name may stand in records and placeholders.
func ruleName(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for _, r := range s {
		if r != '.' && r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') {
			return false
		}
	}
	return true
}

// strictly reads one JSON document without members that are not known.
func strictly(doc []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind it")
	}
	return nil
}

// firstWait is how long is waited before a call is made again; each further time
// twice as long.
const firstWait = 200 * time.Millisecond

// retrying calls until it works, fails for good, or has failed often enough.
func retrying(ctx context.Context, retries int, call func() (again bool, err error)) error {
	for attempt := 0; ; attempt++ {
		again, err := call()
		if err == nil || !again || attempt >= retries || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(firstWait << attempt)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
