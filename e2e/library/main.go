// Command library asks two models with their providers' own SDKs, governed in
// this process: the example of docs/library.md.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"os"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/stoplog/stoplog/govern"
	"github.com/stoplog/stoplog/guard"
	"github.com/stoplog/stoplog/guard/match"
	"github.com/stoplog/stoplog/guard/rules"
)

func main() {
	if err := run(context.Background(), "How do I clone the repository?"); err != nil {
		log.Fatal(err)
	}
}

// open makes the door: where models are, and what may leave them.
func open() (*govern.Transport, error) {
	secrets, err := rules.Select("secrets", "credentials")
	if err != nil {
		return nil, err
	}
	key := make([]byte, 32) // of the fingerprints in the record; keep it to compare runs
	rand.Read(key)
	redact, err := match.Compile(secrets, match.Options{Name: "secrets", Key: key, Verdict: guard.Redact, Evasions: match.Evasions})
	if err != nil {
		return nil, err
	}
	enforced := []guard.Member{{Guard: redact, Mode: guard.Enforce}}
	return govern.Open(govern.Config{
		Upstreams: []govern.Upstream{
			{Name: "openai", Protocol: govern.OpenAI, BaseURL: os.Getenv("OPENAI_URL"), Key: os.Getenv("OPENAI_KEY")},
			{Name: "anthropic", Protocol: govern.Anthropic, BaseURL: os.Getenv("ANTHROPIC_URL"), Key: os.Getenv("ANTHROPIC_KEY")},
		},
		Profiles: []govern.Profile{{
			Name:      "default",
			Upstreams: []string{"openai", "anthropic"},
			Models:    []string{"gpt-*", "claude-*"},
			Input:     enforced,
			Output:    enforced,
		}},
		RecordFile: "requests.jsonl",
	})
}

func run(ctx context.Context, question string) error {
	door, err := open()
	if err != nil {
		return err
	}
	defer door.Close()
	client := &http.Client{Transport: door}

	gpt := openai.NewClient(option.WithHTTPClient(client), option.WithAPIKey("the door's"))
	stream := gpt.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:    "gpt-4o-mini-2024-07-18",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)},
	})
	for stream.Next() {
		for _, choice := range stream.Current().Choices {
			fmt.Print(choice.Delta.Content)
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	fmt.Println()

	claude := anthropic.NewClient(anthropicoption.WithHTTPClient(client), anthropicoption.WithAPIKey("the door's"))
	message, err := claude.Messages.New(ctx, anthropic.MessageNewParams{
		Model:     "claude-opus-5-5",
		MaxTokens: 1024,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	})
	if err != nil {
		return err
	}
	for _, block := range message.Content {
		fmt.Println(block.Text)
	}
	return nil
}
