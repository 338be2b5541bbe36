package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// Folder puts each ticket into a folder as a file of Markdown with front matter.
type Folder struct{ Dir string }

// Name implements [Sink].
func (f Folder) Name() string { return "folder " + f.Dir }

// Send implements [Sink]. A file that is there is the ticket's: its name has the id.
func (f Folder) Send(_ context.Context, t Filed) (string, error) {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return "", err
	}
	head, err := t.frontMatter()
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("%s-%s-%s-%s.md", slug(t.Playbook), slug(t.Step), slug(t.Kind), filepath.Base(t.ID))
	path := filepath.Join(f.Dir, name)
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return path, write(path, append(head, t.markdown()...))
}

// slug is a name as a part of a file's.
func slug(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(s))
	return s[:min(len(s), 40)]
}

// maxAnswer is how much of a service's answer is read.
const maxAnswer = 1 << 20

// call sends a body of JSON and reads the answer into, unless that is nil. The error
// of a refusal has its status, and nothing of its body.
func call(ctx context.Context, way http.RoundTripper, method, url string, header http.Header, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "stoplog")
	resp, err := way.RoundTrip(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("%s answered %s", r.URL.Host, resp.Status)
	}
	if err != nil || into == nil {
		return err
	}
	return json.Unmarshal(answer, into)
}

// GitHub opens an issue for each ticket.
type GitHub struct {
	API   string // the base address: https://api.github.com
	Repo  string // OWNER/NAME
	Token string
	Way   http.RoundTripper
}

// Name implements [Sink].
func (g GitHub) Name() string { return "github " + g.Repo }

// label is what a ticket's issue is found again by.
func (t Ticket) label() string { return "stoplog-" + t.Digest[:min(16, len(t.Digest))] }

// Send implements [Sink]. An open issue with the ticket's label is the ticket's: a
// delivery whose answer was lost is not made twice.
func (g GitHub) Send(ctx context.Context, t Filed) (string, error) {
	header := http.Header{
		"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}, "Authorization": {"Bearer " + g.Token},
	}
	type issue struct {
		URL string `json:"html_url"`
	}
	at := strings.TrimRight(g.API, "/") + "/repos/" + g.Repo + "/issues"
	var found []issue
	if err := call(ctx, g.Way, http.MethodGet, at+"?state=open&per_page=1&labels="+t.label(), header, nil, &found); err != nil {
		return "", err
	}
	if len(found) > 0 {
		return found[0].URL, nil
	}
	body, err := json.Marshal(struct {
		Title  string   `json:"title"`
		Body   string   `json:"body"`
		Labels []string `json:"labels"`
	}{t.title(), string(t.markdown()), []string{"stoplog", t.label()}})
	if err != nil {
		return "", err
	}
	var made issue
	err = call(ctx, g.Way, http.MethodPost, at, header, body, &made)
	return made.URL, err
}

// Webhook posts each ticket as JSON. Its header Idempotency-Key is the digest; if
// there is a secret, Stoplog-Signature is sha256= and the HMAC of the body under it,
// in hexadecimal.
type Webhook struct {
	URL    string
	Secret string
	Way    http.RoundTripper
}

// Name implements [Sink]. What stands behind the host may be a secret.
func (h Webhook) Name() string {
	r, err := http.NewRequest(http.MethodPost, h.URL, nil)
	if err != nil {
		return "webhook"
	}
	sum := sha256.Sum256([]byte(h.URL))
	return "webhook " + r.URL.Host + " " + hex.EncodeToString(sum[:4])
}

// Send implements [Sink].
func (h Webhook) Send(ctx context.Context, t Filed) (string, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	header := http.Header{"Idempotency-Key": {t.Digest}, "Stoplog-Ticket": {t.ID}}
	if h.Secret != "" {
		mac := hmac.New(sha256.New, []byte(h.Secret))
		mac.Write(body)
		header.Set("Stoplog-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	return "", call(ctx, h.Way, http.MethodPost, h.URL, header, body, nil)
}

// Command runs a program with each ticket as JSON on its stdin; the first line that
// it prints is where the ticket is.
type Command struct {
	Argv []string
	// Run runs a program, and fails if it did not end well.
	Run func(ctx context.Context, argv []string, stdin io.Reader, stdout io.Writer) error
}

// Name implements [Sink].
func (c Command) Name() string { return "command " + filepath.Base(c.Argv[0]) }

// Send implements [Sink].
func (c Command) Send(ctx context.Context, t Filed) (string, error) {
	body, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	if err := c.Run(ctx, c.Argv, bytes.NewReader(append(body, '\n')), &out); err != nil {
		return "", err
	}
	first, _, _ := strings.Cut(out.String(), "\n")
	return strings.ToValidUTF8(first[:min(len(first), 200)], ""), nil
}
