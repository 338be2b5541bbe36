package wire

import "slices"

// OpenAIEmbeddings is OpenAI's embeddings: text goes in, and what comes out are
// vectors.
var OpenAIEmbeddings = &Format{
	name:        "openai-embeddings",
	tables:      loadTables("openai-embeddings.txt"),
	answer:      "embeddings",
	body:        plainBody,
	appendError: appendOpenAIError,
}

// inTokens reports whether a request gives text as the numbers of its tokens,
// which nobody can read.
func inTokens(leaves []leaf) bool {
	return slices.ContainsFunc(leaves, func(l leaf) bool { return l.token == '0' && (l.path == "input[]" || l.path == "input[][]") })
}
