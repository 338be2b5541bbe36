package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
)

// maxBody is the largest body that is read: a message may be a file that somebody
// has pasted, and a decision is small.
const maxBody = 1 << 20

// readBody reads the one JSON object of a request into the struct that into
// points to. Each of its members is known and stands there once.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return failf(NotJSON, "a body is sent as application/json, not %.100q", r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return failf(TooLarge, "the body is larger than %d bytes", maxBody)
	case err != nil:
		return failf(BadRequest, "read the body: %v", err)
	}
	if err := checkMembers(body, into); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return failf(BadRequest, "read the body: %s", spoken(err))
	}
	return nil
}

// checkMembers refuses what encoding/json would let pass: a member of another
// name or another case, one that stands there twice, text that is not UTF-8,
// something behind the object.
func checkMembers(body []byte, into any) error {
	known := members(into)
	if !bytes.Equal(bytes.ToValidUTF8(body, nil), body) {
		return failf(BadRequest, "read the body: it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return failf(BadRequest, "the body is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return failf(BadRequest, "read the body: %s", spoken(err))
		}
		name := t.(string)
		switch {
		case !slices.Contains(known, name):
			return failf(BadRequest, "unknown member %q: %s", name, expected(name, known))
		case seen[name]:
			return failf(BadRequest, "member %q stands there twice", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return failf(BadRequest, "read member %q: %s", name, spoken(err))
		}
	}
	if _, err := d.Token(); err != nil {
		return failf(BadRequest, "read the body: %s", spoken(err))
	}
	if _, err := d.Token(); err != io.EOF {
		return failf(BadRequest, "there is something behind the body's object")
	}
	return nil
}

// members are the names of a struct's members in JSON, in their order.
func members(into any) (names []string) {
	t := reflect.TypeOf(into).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

func expected(name string, known []string) string {
	if s := diag.Suggest(name, known); s != "" {
		return fmt.Sprintf("did you mean %q?", s)
	}
	return "there are " + strings.Join(known, ", ")
}

// spoken is an error of encoding/json without names of this program's.
func spoken(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return fmt.Sprintf("member %q can not be a %s", kind.Field, kind.Value)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends early"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// query reads the parameters of a request, all of which are known and stand there
// once.
func query(r *http.Request, known ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failf(BadRequest, "read the parameters: %v", err)
	}
	for name, values := range q {
		switch {
		case !slices.Contains(known, name):
			return nil, failf(BadRequest, "unknown parameter %q: %s", name, expected(name, known))
		case len(values) > 1:
			return nil, failf(BadRequest, "parameter %q stands there twice", name)
		}
	}
	return q, nil
}

// maxPage is the most that a list has at once.
const maxPage = 1000

// pageSize reads the parameter limit; without it, it is 100.
func pageSize(q url.Values) (int, error) {
	s := q.Get("limit")
	if s == "" {
		return 100, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxPage {
		return 0, failf(BadRequest, "limit %.40q: want 1 to %d", s, maxPage)
	}
	return n, nil
}
