package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// A nodeProcess runs ask.mjs: it answers one question after the other.
type nodeProcess struct {
	cmd   *exec.Cmd
	asked io.WriteCloser
	lines *bufio.Reader

	mu   sync.Mutex
	said bytes.Buffer // on its stderr
}

// node is the process that all tests share: to load the clients takes longer than
// to ask them. It is started by the first question and stopped by TestMain.
var node nodeProcess

// Write keeps what the clients complain of.
func (n *nodeProcess) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.said.Write(p)
}

// complaints returns what was complained of since it was asked last.
func (n *nodeProcess) complaints() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.said.Reset()
	return n.said.String()
}

func (n *nodeProcess) start() error {
	if n.cmd != nil {
		return nil
	}
	cmd := exec.Command("node", "ask.mjs")
	cmd.Stderr = n
	var err error
	if n.asked, err = cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	n.lines = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return err
	}
	n.cmd = cmd
	return nil
}

// stop ends the process, which ends by itself when it is asked nothing more.
func (n *nodeProcess) stop() error {
	if n.cmd == nil {
		return nil
	}
	late := time.AfterFunc(patience, func() { n.cmd.Process.Kill() })
	defer late.Stop()
	return errors.Join(n.asked.Close(), n.cmd.Wait())
}

// ask writes a question and reads the answer. A process that does not answer is
// killed, and then its output ends.
func (n *nodeProcess) ask(question []byte) ([]byte, error) {
	if err := n.start(); err != nil {
		return nil, err
	}
	late := time.AfterFunc(patience, func() { n.cmd.Process.Kill() })
	defer late.Stop()
	if _, err := n.asked.Write(append(question, '\n')); err != nil {
		return nil, err
	}
	return n.lines.ReadBytes('\n')
}

// askNode asks with a JavaScript client.
func askNode(t *testing.T, q question) answer {
	t.Helper()
	if noNode != nil {
		t.Skip("no JavaScript clients: ", noNode)
	}
	asked, err := json.Marshal(struct {
		question
		Retries int `json:"retries"`
	}{q, retries})
	if err != nil {
		t.Fatal(err)
	}
	told, err := node.ask(asked)
	if err != nil {
		t.Fatalf("node ask.mjs: %v\n%s", err, node.complaints())
	}
	if said := node.complaints(); said != "" {
		t.Errorf("the client complains: %s", said)
	}
	var a struct {
		answer
		Broken string `json:"broken"`
	}
	if err := json.Unmarshal(told, &a); err != nil {
		t.Fatalf("node ask.mjs: %v in %q", err, told)
	}
	if a.Broken != "" {
		t.Fatalf("the client breaks: %s", a.Broken)
	}
	if len(a.Tools) == 0 {
		a.Tools = nil
	}
	return a.answer
}

// askedOf has a JavaScript client ask that goes by a name of its own in ask.mjs.
func askedOf(sdk string) func(*testing.T, question) answer {
	return func(t *testing.T, q question) answer {
		t.Helper()
		q.SDK = sdk
		return askNode(t, q)
	}
}
