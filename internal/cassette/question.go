package cassette

import "strings"

// identifying are the members of a request that say which answer is meant: who
// is asked, how, and what was said. The others change often and mean little.
var identifying = []string{"model", "stream", "system", "messages"}

// question makes the `match` of a recording, from the request as it was asked and
// as it was scrubbed. Both match it.
func question(asked, scrubbed []byte) (map[string]any, error) {
	a, err := decodeObject(asked)
	if err != nil {
		return nil, err
	}
	s, err := decodeObject(scrubbed)
	if err != nil {
		return nil, err
	}
	m := map[string]any{}
	for _, key := range identifying {
		if p, ok := shared(a[key], s[key]); ok && a[key] != nil {
			m[key] = p
		}
	}
	return m, nil
}

func decodeObject(doc []byte) (map[string]any, error) {
	v, err := decode(doc)
	o, _ := v.(map[string]any)
	return o, err
}

// shared is a pattern for what two values have in common, if there is one. They
// are the same but where something was scrubbed.
func shared(a, s any) (any, bool) {
	switch a := a.(type) {
	case map[string]any:
		s, ok := s.(map[string]any)
		return sharedMembers(a, s), ok
	case []any:
		s, ok := s.([]any)
		if !ok || len(s) != len(a) {
			return nil, false
		}
		array := make([]any, len(a))
		for i := range a {
			if array[i], ok = shared(a[i], s[i]); !ok {
				return nil, false // a pattern of an array has all its elements
			}
		}
		return array, true
	case string:
		s, ok := s.(string)
		return sharedText(a, s), ok
	}
	return a, a == s
}

func sharedMembers(a, s map[string]any) map[string]any {
	object := map[string]any{}
	for key, value := range a {
		other, ok := s[key]
		if !ok || strings.HasPrefix(key, "$") { // in a pattern it would mean something else
			continue
		}
		if p, ok := shared(value, other); ok {
			object[key] = p
		}
	}
	return object
}

// sharedText is a pattern for a text: what was scrubbed is not asked for, nor is
// what cannot be scrubbed.
func sharedText(a, s string) any {
	switch {
	case encoded(a):
		return map[string]any{"$has": ""}
	case a == s:
		return a
	}
	head, tail := 0, 0
	for head < min(len(a), len(s)) && a[head] == s[head] {
		head++
	}
	for tail < min(len(a), len(s)) && a[len(a)-1-tail] == s[len(s)-1-tail] {
		tail++
	}
	text := a[:head]
	if tail > head {
		text = a[len(a)-tail:]
	}
	return map[string]any{"$has": strings.ToValidUTF8(text, "")} // it may begin or end inside a rune
}

// minEncoded is the least length, in bytes, of text that is taken for an image, a
// document or a signature in base64: longer than any word.
const minEncoded = 256

// encoded reports whether a text is bytes in base64, and so no text.
func encoded(s string) bool {
	if strings.HasPrefix(s, "data:") {
		if _, data, ok := strings.Cut(s, ";base64,"); ok {
			s = data
		}
	}
	return len(s) >= minEncoded && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=") == ""
}
