package wire

import (
	"context"
	base "encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="

// media are parts of messages that no guard can read, in each format.
var media = map[*Format]map[string][]string{
	OpenAIChat: {
		ruleImage: {`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `"}}`, `{"type":"image_url","image_url":{"url":"https://example.com/x.png"}}`},
		ruleAudio: {`{"type":"input_audio","input_audio":{"data":"` + png + `","format":"wav"}}`},
		ruleFile:  {`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + png + `"}}`, `{"type":"file","file":{"file_id":"file-1"}}`},
	},
	OpenAIResponses: {
		ruleImage: {`{"type":"input_image","image_url":"data:image/png;base64,` + png + `"}`, `{"type":"input_image","file_id":"file-1"}`},
		ruleAudio: {`{"type":"input_audio","input_audio":{"data":"` + png + `","format":"wav"}}`},
		ruleFile:  {`{"type":"input_file","filename":"a.pdf","file_data":"data:application/pdf;base64,` + png + `"}`, `{"type":"input_file","file_url":"https://example.com/a.pdf"}`, `{"type":"new","file_data":"data:application/pdf;base64,` + png + `"}`},
	},
	AnthropicMessages: {
		ruleImage: {`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}`, `{"type":"image","source":{"type":"url","url":"https://example.com/x.png"}}`},
		ruleFile:  {`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + png + `"}}`, `{"type":"document","source":{"type":"file","file_id":"file_1"}}`},
	},
}

func asking(f *Format, part string) []byte {
	member := "messages"
	if f == OpenAIResponses {
		member = "input"
	}
	return fmt.Appendf(nil, `{"model":"m",%q:[{"role":"user","content":[{"type":"text","text":"look"},%s]}]}`, member, part)
}

// TestMedia: what no guard can read passes and is on record, or is refused.
func TestMedia(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets")
	deny := map[string]Media{ruleImage: {NoImages: true}, ruleAudio: {NoAudio: true}, ruleFile: {NoFiles: true}}
	for f, kinds := range media {
		for kind, parts := range kinds {
			for _, part := range parts {
				doc := asking(f, part)
				for policy, m := range deny {
					r, err := f.Request(Options{Context: context.Background(), Chain: chain, Media: m}, doc)
					if err != nil {
						t.Fatal(err)
					}
					if len(r.Decisions) != 1 || r.Decisions[0].Guard != "media" || r.Decisions[0].Rule != kind || !strings.Contains(r.Decisions[0].Channel, "content/1") {
						t.Errorf("%s %s: recorded as %+v", f.Name(), part, r.Decisions)
						continue
					}
					verdict, status := guard.Allow, Allowed
					if policy == kind {
						verdict, status = guard.Deny, Blocked
					}
					if r.Decisions[0].Verdict != verdict || r.Outcome.Status != status || (r.Doc == nil) != (policy == kind) {
						t.Errorf("%s %s, without %ss: %v, %+v", f.Name(), part, policy, r.Decisions[0].Verdict, r.Outcome)
					}
				}
			}
		}
	}
}

// TestEmbeddedText: a file of text in base64 is decoded and judged, and goes on
// as one; it is none that nobody can read.
func TestEmbeddedText(t *testing.T) {
	chain := patterns(t, guard.Redact, "secrets")
	text := "line one\nmy key " + planted + "\nmore"
	encoded := base.StdEncoding.EncodeToString([]byte(text))
	parts := map[*Format][]string{
		OpenAIChat:        {`{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,` + encoded + `"}}`, `{"type":"file","file":{"file_data":"data:application\/json;charset=utf-8;base64,` + encoded + `"}}`},
		OpenAIResponses:   {`{"type":"input_file","filename":"a.md","file_data":"data:text/markdown;base64,` + encoded + `"}`, `{"type":"input_image","image_url":"data:image/svg+xml;base64,` + encoded + `"}`},
		AnthropicMessages: {`{"type":"document","source":{"type":"base64","media_type":"text/plain","data":"` + encoded + `"}}`, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":` + jsonString(text) + `}}`, `{"type":"document","source":{"type":"content","content":[{"type":"text","text":` + jsonString(text) + `}]}}`},
	}
	for f, parts := range parts {
		for _, part := range parts {
			r, err := f.Request(Options{Context: context.Background(), Chain: chain, Media: Media{NoFiles: true}}, asking(f, part))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(r.Doc), encoded) || strings.Contains(string(r.Doc), planted) || r.Outcome.Status != Redacted || !json.Valid(r.Doc) {
				t.Errorf("%s: %s\nbecomes %s\n%+v", f.Name(), part, r.Doc, r.Outcome)
			}
			want := strings.Replace(text, planted, "[redacted:github-pat]", 1)
			if !strings.Contains(string(r.Doc), base.StdEncoding.EncodeToString([]byte(want))) && !strings.Contains(string(r.Doc), jsonString(want)) {
				t.Errorf("%s: the file is not whole in %s", f.Name(), r.Doc)
			}
		}
	}
	clean := asking(OpenAIChat, `{"type":"file","file":{"file_data":"data:text/plain;base64,`+base.StdEncoding.EncodeToString([]byte("nothing here"))+`"}}`)
	if r, err := OpenAIChat.Request(Options{Context: context.Background(), Chain: chain}, clean); err != nil || string(r.Doc) != string(clean) || len(r.Decisions) != 0 {
		t.Errorf("a clean file becomes %s, %+v, %v", r.Doc, r, err)
	}
}

// TestTokensAreRefused: embeddings may be asked of text, which is judged, and of
// numbers of tokens, which nobody can read.
func TestTokensAreRefused(t *testing.T) {
	opt := Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "secrets")}
	for _, input := range []string{`[1,2,3]`, `[[1,2],[3]]`, `["a",[3]]`} {
		if _, err := OpenAIEmbeddings.Request(opt, []byte(`{"model":"m","input":`+input+`}`)); err == nil {
			t.Errorf("%s is sent", input)
		}
	}
	for _, input := range []string{`"my ` + planted + `"`, `["a","my ` + planted + `"]`} {
		r, err := OpenAIEmbeddings.Request(opt, []byte(`{"model":"m","input":`+input+`,"dimensions":3}`))
		if err != nil || strings.Contains(string(r.Doc), planted) || !strings.Contains(string(r.Doc), "my [redacted:github-pat]") {
			t.Errorf("%s: %+v %v", input, r, err)
		}
	}
	for _, vector := range []string{`[0.4111111111111111,-1e-9,0]`, `"AAAAQEAAAEBA"`} {
		doc := `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":` + vector + `}],"usage":{"prompt_tokens":5,"total_tokens":5}}`
		v := OpenAIEmbeddings.Answer(Options{Context: context.Background(), Chain: patterns(t, guard.Redact, "pii")}, []byte(doc))
		if string(v.Doc) != doc || v.Outcome.Usage.Input != 5 {
			t.Errorf("%s becomes %s, %+v", doc, v.Doc, v.Outcome)
		}
	}
	leak := `{"object":"list","model":"m","data":[{"index":0,"embedding":"` + "my key: " + planted + `"}]}`
	if v := OpenAIEmbeddings.Answer(opt, []byte(leak)); strings.Contains(string(v.Doc), planted) {
		t.Errorf("words in the place of a vector pass: %s", v.Doc)
	}
}
