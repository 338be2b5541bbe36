package govern

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stoplog/stoplog/internal/wire"
)

// A route is something that the door serves.
type route struct {
	method, path string // the path's end
	protocol     string
	format       *wire.Format
	models       bool // a list of models, or one of them
}

var routes = []route{
	{http.MethodPost, "/chat/completions", OpenAI, wire.OpenAIChat, false},
	{http.MethodPost, "/responses", OpenAI, wire.OpenAIResponses, false},
	{http.MethodPost, "/embeddings", OpenAI, wire.OpenAIEmbeddings, false},
	{http.MethodPost, "/messages", Anthropic, wire.AnthropicMessages, false},
	{http.MethodPost, "/messages/count_tokens", Anthropic, wire.AnthropicCountTokens, false},
	{http.MethodGet, "/models", OpenAI, wire.OpenAIChat, true},
	{http.MethodGet, "/models", Anthropic, wire.AnthropicMessages, true},
}

// formats are what protocols say errors and models in.
var formats = map[string]*wire.Format{OpenAI: wire.OpenAIChat, Anthropic: wire.AnthropicMessages}

// anthropicVersions are those whose answers are alike for all that wire reads.
var anthropicVersions = map[string]bool{"2023-06-01": true, "2026-10-21": true}

// findRoute matches the end of a request's path. Models are asked for in
// Anthropic's protocol if the request says a version of it.
func findRoute(req *http.Request) (route, bool) {
	protocol, _ := req.Context().Value(protocolKey{}).(string)
	for _, r := range routes {
		asked := protocol
		if asked == "" && r.models {
			if asked = OpenAI; req.Header.Get("Anthropic-Version") != "" {
				asked = Anthropic
			}
		}
		if asked != "" && asked != r.protocol || req.Method != r.method {
			continue
		}
		if strings.HasSuffix(req.URL.Path, r.path) {
			return r, true
		}
		if _, id, ok := strings.Cut(req.URL.Path, r.path+"/"); ok && r.models && isModel(id) {
			r.path += "/" + id
			return r, true
		}
	}
	return route{}, false
}

// isModel reports whether the end of a path may be the name of a model, which is
// passed on: nothing in it means anything to a path but slashes.
func isModel(id string) bool {
	const most = 200
	plain := !strings.ContainsFunc(id, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:@/", r))
	})
	return id != "" && len(id) <= most && plain && !strings.Contains(id, "..") && !strings.Contains(id, "//") && !strings.HasPrefix(id, "/") && !strings.HasSuffix(id, "/")
}

// Serves reports whether the door serves a path of a protocol.
func Serves(protocol, method, path string) bool {
	req, err := http.NewRequest(method, "http://door.invalid", nil)
	if err != nil {
		return false
	}
	req.URL.Path = path
	r, ok := findRoute(req.WithContext(WithProtocol(req.Context(), protocol)))
	return ok && r.path == path
}

// Paths lists what the door serves of a protocol: a method and the end of a path.
func Paths(protocol string) (paths [][2]string) {
	for _, r := range routes {
		if r.protocol != protocol {
			continue
		}
		if paths = append(paths, [2]string{r.method, r.path}); r.models {
			paths = append(paths, [2]string{r.method, r.path + "/{model}"})
		}
	}
	return paths
}

// notServed is the answer to a path that would pass everything by.
func notServed(req *http.Request) wire.Error {
	return wire.Error{Status: http.StatusNotFound, Type: "not_found_error", Code: "not_served",
		Message: fmt.Sprintf("%s %s is not served: what is not judged is not passed on. Served are %s", req.Method, printable(req.URL.Path), Served())}
}

// Served lists what the door serves, for people.
func Served() string {
	var list []string
	for _, p := range []struct{ protocol, name string }{{OpenAI, "OpenAI"}, {Anthropic, "Anthropic"}} {
		for _, path := range Paths(p.protocol) {
			list = append(list, fmt.Sprintf("%s …%s (%s)", path[0], path[1], p.name))
		}
	}
	return strings.Join(list, ", ")
}
