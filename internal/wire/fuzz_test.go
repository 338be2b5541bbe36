package wire

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stoplog/stoplog/guard"
)

// documents are seeds: what JSON can be, and what it cannot.
var documents = []string{
	`{}`, `[]`, `0`, `-0.5e+10`, `01`, `-`, `1.`, `1e`, `"a"`, `""`, `"\u00e9\ud83d\ude00\n\/"`, `"\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`, `"\uzz"`, `"\`, `"\x"`,
	`{"a":1,"b":[true,false,null,{"c":"d"}]}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a" : [ 1 , 2 ] }`, `{"a":1,}`, `[1,]`, `{"a"}`, `tru`, `nul`, "\"\x01\"", "\"\xff\"", ` {"k":"v"} `, `{"k":"v"} x`,
	`{"choices":[{"delta":{"content":"x","Content":1}}]}`, `{"n":4111111111111111,"m":-12E5}`, `{"type":"message_start"}`, strings.Repeat("[", 600) + strings.Repeat("]", 600),
}

// FuzzScan: a document is accepted exactly if encoding/json accepts it, but for
// members that come twice and for depth; and its leaves are its tokens.
func FuzzScan(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	roots := []*node{responsesTables["response"].root, responsesTables["response.output_text.delta"].root, openaiTables["chunk"].root, openaiTables["request"].root, anthropicTables["message"].root, {}}
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, root := range roots {
			var s scanner
			leaves, err := s.scan(doc, root)
			if valid := json.Valid(doc); err != nil {
				if valid && !strings.Contains(err.Error(), "twice") && !strings.Contains(err.Error(), "deeper") {
					t.Fatalf("%q is JSON: %v", doc, err)
				}
				continue
			} else if !valid {
				t.Fatalf("%q is no JSON", doc)
			}
			checkLeaves(t, doc, leaves)
		}
	})
}

// checkLeaves compares leaves with what encoding/json makes of their places.
func checkLeaves(t *testing.T, doc []byte, leaves []leaf) {
	at := -1
	for _, l := range leaves {
		if l.from <= at || l.to <= l.from || l.to > len(doc) {
			t.Fatalf("%q: a leaf at %d to %d after %d", doc, l.from, l.to, at)
		}
		at = l.from
		token := doc[l.from:l.to]
		var v any
		d := json.NewDecoder(bytes.NewReader(token))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%q: the leaf %q is no value: %v", doc, token, err)
		}
		switch v := v.(type) {
		case string:
			if l.token != '"' && l.token != 'k' || string(unescape(nil, token[1:len(token)-1])) != strings.ToValidUTF8(v, "\ufffd") && bytes.Equal(bytes.ToValidUTF8(doc, nil), doc) {
				t.Fatalf("%q: the leaf %q says %q", doc, token, unescape(nil, token[1:len(token)-1]))
			}
		case json.Number:
			if l.token != '0' {
				t.Fatalf("%q: the leaf %q is %c", doc, token, l.token)
			}
		}
	}
}

// FuzzProject: however a document is cut, its projection is the same and so is
// what is settled; edits of a document leave a document.
func FuzzProject(f *testing.F) {
	for i, d := range documents {
		f.Add([]byte(d), uint64(i))
	}
	f.Fuzz(func(t *testing.T, doc []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 7))
		whole, settledWhole := project(doc, []int{len(doc)})
		for range 3 {
			var cuts []int
			for at := 0; at < len(doc); {
				at = min(len(doc), at+1+r.IntN(6))
				cuts = append(cuts, at)
			}
			got, settled := project(doc, cuts)
			if !bytes.Equal(got, whole) {
				t.Fatalf("%q cut at %v: projection %q, whole %q", doc, cuts, got, whole)
			}
			if settled[len(doc)] != settledWhole[len(doc)] {
				t.Fatalf("%q cut at %v: settled %d, whole %d", doc, cuts, settled[len(doc)], settledWhole[len(doc)])
			}
		}
		bytewise := make([]int, len(doc))
		for i := range bytewise {
			bytewise[i] = i + 1
		}
		_, settled := project(doc, bytewise)
		for cut := range len(doc) {
			_, s := project(doc[:cut], []int{cut})
			if cut > 0 && s[cut] != settled[cut] {
				t.Fatalf("%q: after %d bytes %d are settled, byte by byte %d", doc, cut, s[cut], settled[cut])
			}
		}
		if json.Valid(doc) && len(whole) > 0 {
			from := r.IntN(len(whole))
			edit := guard.Edit{Start: int64(from), End: int64(from + 1 + r.IntN(len(whole)-from)), Text: []string{"", `[redacted:"x"]`}[r.IntN(2)]}
			second := guard.Edit{Start: edit.End, End: int64(len(whole)), Text: "y"}
			if out := editedDocument(doc, edit, second); !json.Valid(out) {
				t.Fatalf("%q with %+v and %+v: %q", doc, edit, second, out)
			}
		}
	})
}

// project gives a document's projection, and how much of the document is
// settled after each cut when all of the projection is.
func project(doc []byte, cuts []int) (projection []byte, settled map[int]int64) {
	p := &projector{}
	settled = map[int]int64{0: 0}
	from := 0
	for _, to := range cuts {
		projection = append(projection, p.write(doc[from:to])...)
		settled[to] = p.settle(p.out)
		from = to
	}
	return append(projection, p.close()...), settled
}

func editedDocument(doc []byte, edits ...guard.Edit) []byte {
	p := &projector{}
	p.write(doc)
	p.close()
	var found []edit
	for _, e := range edits {
		if e.Start < e.End {
			found = p.find(found, e)
		}
	}
	return appendEdited(nil, doc, true, 0, 0, int64(len(doc)), found)
}

// FuzzStream: whatever an upstream sends in whatever pieces, the client reads
// the same frames, and never what a rule finds.
func FuzzStream(f *testing.F) {
	seeds := [][]byte{
		serve(OpenAIChat, []string{deltaOf(`{"content":"a ` + planted + ` b"}`), finishOf("stop"), usageChunk}),
		serve(AnthropicMessages, oneBlock(`{"type":"text","text":""}`, textDelta("a "+planted+" b"))),
		serve(AnthropicMessages, oneBlock(`{"type":"tool_use","id":"t","name":"n","input":{}}`, blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"a\":\"`+planted+`\"}"}`))),
		serve(OpenAIResponses, aResponse("a "+planted+" b", `{"a":"`+planted+`"}`)),
		[]byte(": " + planted + "\n\ndata: [DONE]\n\n"), []byte("data: {\r\rdata: {}\n\n\n"),
	}
	for _, s := range seeds {
		f.Add(s, uint64(1))
	}
	redact, deny := patterns(f, guard.Redact, "github-pat"), patterns(f, guard.Deny, "github-pat")
	f.Fuzz(func(t *testing.T, upstream []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		for _, format := range all {
			for _, chain := range []*guard.Chain{redact, deny} {
				want, ds, o := stream(format, Options{Chain: chain, Run: "r", Usage: true}, upstream, max(1, len(upstream)))
				for _, n := range []int{1, 1 + r.IntN(50)} {
					out, ds2, o2 := stream(format, Options{Chain: chain, Run: "r", Usage: true}, upstream, n)
					if !bytes.Equal(out, want) || o != o2 || !slices.Equal(recordLines(ds), recordLines(ds2)) {
						t.Fatalf("in pieces of %d: %+v\n%s\nwhole: %+v\n%s", n, o2, out, o, want)
					}
				}
				if bytes.Contains(want, []byte(planted)) {
					t.Fatalf("came out:\n%s", want)
				}
			}
		}
	})
}

func recordLines(ds []Decision) []string { return strings.Split(record(ds), "\n") }

// aResponse is a response with a message and a call.
func aResponse(text, args string) []string {
	r := &responder{}
	p := append(r.begin(), r.text(text[:len(text)/2]), r.text(text[len(text)/2:]))
	message := `{"id":"it_0","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","annotations":[],"text":` + jsonString(text) + `}]}`
	call := `{"id":"it_1","type":"function_call","call_id":"c","name":"f","arguments":` + jsonString(args) + `}`
	return append(p, r.done(0, message), r.added(1, strings.Replace(call, jsonString(args), `""`, 1)),
		r.delta("function_call_arguments", 1, "", args), r.done(1, call), r.completed(message, call))
}

// FuzzDocuments: whatever a caller asks and an upstream answers, a document that
// leaves is one, and has nothing that a rule finds in what it says.
func FuzzDocuments(f *testing.F) {
	_, chat := say(OpenAIChat, []string{"a " + planted})
	_, response := say(OpenAIResponses, []string{"a " + planted})
	_, message := say(AnthropicMessages, []string{"a " + planted})
	seeds := [][]byte{chat, response, message, conversation(OpenAIChat, planted), conversation(OpenAIResponses, planted),
		asking(OpenAIChat, media[OpenAIChat][ruleFile][0]), asking(AnthropicMessages, media[AnthropicMessages][ruleImage][0]),
		[]byte(`{"model":"m","input":["` + planted + `"]}`), []byte(`{"input_tokens":3}`)}
	for _, s := range seeds {
		f.Add(s)
	}
	formats := append([]*Format{OpenAIEmbeddings, AnthropicCountTokens}, all...)
	redact, deny := patterns(f, guard.Redact, "github-pat"), patterns(f, guard.Deny, "github-pat")
	f.Fuzz(func(t *testing.T, doc []byte) {
		for _, format := range formats {
			for _, chain := range []*guard.Chain{redact, deny} {
				opt := Options{Context: t.Context(), Chain: chain, Run: "r"}
				v := format.Answer(opt, doc)
				checkDocument(t, doc, v.Doc)
				r, err := format.Request(opt, doc)
				if err != nil {
					continue
				}
				checkDocument(t, doc, r.Doc)
				opt.Clean = &Clean{}
				for range 2 {
					again, err := format.Request(opt, doc)
					if err != nil || !bytes.Equal(again.Doc, r.Doc) || record(again.Decisions) != record(r.Decisions) {
						t.Fatalf("%q: asked again it is %q, %v, first %q", doc, again.Doc, err, r.Doc)
					}
				}
			}
		}
	})
}

func checkDocument(t *testing.T, came, leaves []byte) {
	t.Helper()
	if leaves == nil {
		return
	}
	if !json.Valid(leaves) {
		t.Fatalf("%q becomes %q", came, leaves)
	}
	if bytes.Contains(leaves, []byte(planted)) {
		t.Fatalf("%q leaves as %q", came, leaves)
	}
}
