package govern

import "context"

// Caller is who sent a request, as far as it is known: by which key of Stoplog's,
// and whose that is. The zero Caller is nobody that showed one.
type Caller struct {
	Key  string `json:"key"`            // its id, which is no secret
	Name string `json:"name,omitempty"` // of the key, for people
	Team string `json:"team,omitempty"`
	App  string `json:"app,omitempty"`
	User string `json:"user,omitempty"`
	// RequestsPerMinute and TokensPerMinute are what it may begin; 0 is no limit.
	// They hold in each process for itself.
	RequestsPerMinute, TokensPerMinute int64 `json:"-"`
}

type callerKey struct{}

// WithCaller returns a context whose calls are a caller's: the record of each
// names it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// caller is who sent the request; nil for one who showed no key.
func (c *call) caller() *Caller {
	if who, ok := c.ctx.Value(callerKey{}).(Caller); ok && who.Key != "" {
		return &who
	}
	return nil
}
