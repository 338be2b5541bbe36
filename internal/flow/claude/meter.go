package claude

import (
	"sync"

	"github.com/stoplog/stoplog/internal/signal"
)

// bytesPerToken is what is reckoned for a token of an answer that is under way.
// Providers say how many there were at its end; until then this is an estimate,
// of 4 bytes as for English.
const bytesPerToken = 4

// meter counts the tokens of a run. A message counts once, whoever tells of it
// and however often: what is highest of what was said.
type meter struct {
	most int64

	mu       sync.Mutex
	messages map[string]*taken
	over     func() // ends what takes them; nil between two turns
	exceeded bool   // more were taken, or were to be
}

// taken is what a message took.
type taken struct {
	asked, answered int64
	bytes           int64 // of its answer, as far as it came
	ended           bool  // its provider has said how much there was
}

func (t *taken) output() int64 {
	if t.ended {
		return t.answered
	}
	return max(t.answered, t.bytes/bytesPerToken)
}

func newMeter(most int64) *meter { return &meter{most: most, messages: map[string]*taken{}} }

// turn says what is to be ended if more is taken from now on.
func (m *meter) turn(over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = over
}

// change changes what a message took.
func (m *meter) change(id string, change func(*taken)) {
	m.mu.Lock()
	t := m.messages[id]
	if t == nil {
		t = &taken{}
		m.messages[id] = t
	}
	change(t)
	end := m.exceeds(m.total() > m.most)
	m.mu.Unlock()
	end()
}

// wanted reports whether there is something left for another call. If not, that
// is the end.
func (m *meter) wanted() bool {
	m.mu.Lock()
	spent := m.total() >= m.most
	end := m.exceeds(spent)
	m.mu.Unlock()
	end()
	return !spent
}

// exceeds notes that the cap is reached, and returns what is to be done then. The
// caller holds mu, and calls that without it.
func (m *meter) exceeds(now bool) func() {
	if !now || m.exceeded {
		return func() {}
	}
	m.exceeded = true
	if m.over == nil {
		return func() {}
	}
	return m.over
}

// reported takes in what somebody says of a message.
func (m *meter) reported(id string, u usage) {
	m.change(id, func(t *taken) { t.asked, t.answered = max(t.asked, u.asked()), max(t.answered, u.Output) })
}

// streamed takes in a piece of an answer.
func (m *meter) streamed(id string, bytes int) {
	m.change(id, func(t *taken) { t.bytes += int64(bytes) })
}

// settled says that the last count of a message has come.
func (m *meter) settled(id string) { m.change(id, func(t *taken) { t.ended = true }) }

// total is what all took. The caller holds mu.
func (m *meter) total() int64 {
	var n int64
	for _, t := range m.messages {
		n += t.asked + t.output()
	}
	return n
}

// state is how much was taken, and whether that is too much.
func (m *meter) state() (tokens int64, exceeded bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.total(), m.exceeded
}

// usage is what all took, in the engine's form.
func (m *meter) usage() signal.Usage {
	m.mu.Lock()
	defer m.mu.Unlock()
	var u signal.Usage
	for _, t := range m.messages {
		u.Input += t.asked
		u.Output += t.output()
		u.Estimated = u.Estimated || !t.ended
	}
	return u
}
