package cassette

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A pattern is compiled from a `match`.
type pattern interface {
	// compare counts the leaves that are as the pattern wants them, up to the
	// first that is not, and gives the path of that one; empty if all are.
	compare(v any, path string) (leaves int, differs string)
}

type (
	objectPattern []memberPattern // in order of the keys
	memberPattern struct {
		key   string
		value pattern
	}
	arrayPattern []pattern
	hasPattern   string // a string that contains it
	leafPattern  struct{ value any }
)

func (p objectPattern) compare(v any, path string) (int, string) {
	object, ok := v.(map[string]any)
	if !ok {
		return 0, path
	}
	sum := 0
	for _, m := range p {
		at := path + "." + m.key
		value, ok := object[m.key]
		if !ok {
			return sum, at
		}
		n, differs := m.value.compare(value, at)
		if sum += n; differs != "" {
			return sum, differs
		}
	}
	return sum, ""
}

func (p arrayPattern) compare(v any, path string) (int, string) {
	array, ok := v.([]any)
	if !ok || len(array) != len(p) {
		return 0, path
	}
	sum := 0
	for i, want := range p {
		n, differs := want.compare(array[i], path+"["+strconv.Itoa(i)+"]")
		if sum += n; differs != "" {
			return sum, differs
		}
	}
	return sum, ""
}

func (p hasPattern) compare(v any, path string) (int, string) {
	if s, ok := v.(string); ok && strings.Contains(s, string(p)) {
		return 1, ""
	}
	return 0, path
}

func (p leafPattern) compare(v any, path string) (int, string) {
	if p.value == v {
		return 1, ""
	}
	a, aok := p.value.(json.Number)
	b, bok := v.(json.Number)
	if aok && bok && sameNumber(a, b) {
		return 1, ""
	}
	return 0, path
}

// sameNumber says whether two numbers that are written differently are equal.
func sameNumber(a, b json.Number) bool {
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// compile makes a pattern of a decoded `match`.
func compile(v any) (pattern, error) {
	switch v := v.(type) {
	case map[string]any:
		return compileObject(v)
	case []any:
		array := make(arrayPattern, len(v))
		for i := range v {
			p, err := compile(v[i])
			if err != nil {
				return nil, err
			}
			array[i] = p
		}
		return array, nil
	}
	return leafPattern{v}, nil
}

func compileObject(v map[string]any) (pattern, error) {
	var object objectPattern
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if strings.HasPrefix(key, "$") {
			text, ok := v["$has"].(string)
			if !ok || len(v) > 1 {
				return nil, fmt.Errorf(`in match, a key with $ is %q: want {"$has":"text"} alone`, key)
			}
			return hasPattern(text), nil
		}
		p, err := compile(v[key])
		if err != nil {
			return nil, err
		}
		object = append(object, memberPattern{key, p})
	}
	return object, nil
}

// decode reads one JSON value, with its numbers as they are written.
func decode(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("more than one value")
	}
	return v, nil
}

// asked is a request's body as the patterns see it.
type asked struct {
	value any
	json  bool
}

func decodeBody(body []byte) asked {
	v, err := decode(body)
	return asked{v, err == nil}
}

// used is what differs if nothing does but that the exchange is no longer free.
const used = "used"

// miss says how near an exchange came to a request.
type miss struct {
	exchange *exchange
	depth    int    // 0: another path, 1: another method, 2: another body, 3: used
	leaves   int    // of the body that are as they should be
	differs  string // the first path that is not; empty: none
}

// nearer orders misses; of equals the first is kept.
func nearer(a, b miss) int {
	return cmp.Or(cmp.Compare(a.depth, b.depth), cmp.Compare(a.leaves, b.leaves))
}

// compare says where the exchange's request first differs from the one asked.
func (e *exchange) compare(method, path string, body asked) miss {
	switch {
	case e.path != path:
		return miss{e, 0, 0, "path"}
	case e.method != method:
		return miss{e, 1, 0, "method"}
	case e.match == nil:
		return miss{e, 3, 0, ""}
	case !body.json:
		return miss{e, 2, 0, "body"}
	}
	leaves, differs := e.match.compare(body.value, "body")
	if differs != "" {
		return miss{e, 2, leaves, differs}
	}
	return miss{e, 3, leaves, ""}
}
