package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"testing"
)

// askNode asks with a JavaScript client, in a process of its own.
func askNode(t *testing.T, q question) answer {
	t.Helper()
	if noNode != nil {
		t.Skip("no JavaScript clients: ", noNode)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	asked, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", "ask.mjs", string(asked), fmt.Sprint(retries))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("node ask.mjs: %v\n%s", err, said.Bytes())
	}
	if said.Len() > 0 {
		t.Errorf("the client complains: %s", said.Bytes())
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatalf("node ask.mjs: %v in %q", err, out.Bytes())
	}
	return a
}
