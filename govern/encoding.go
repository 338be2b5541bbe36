package govern

import (
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// maxWindow is how far back a zstd body may refer, and so how much of one is
// kept: what RFC 9659 lets a server ask of a client.
const maxWindow = 8 << 20

// errEncoding is a Content-Encoding that is not decoded here.
var errEncoding = errors.New("an encoding that is not known")

// decode is the text of a body that is encoded once, or not at all. It reads no
// more of the body than what it gives needs, so a limit on what is read from it
// bounds a body that grows.
func decode(encoding string, body io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return body, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, errors.New("says it is gzip and is not")
		}
		return z, nil
	case "br":
		return brotli.NewReader(body), nil
	case "zstd":
		// One block at a time, on the goroutine that reads: there is nothing to close.
		return zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return nil, errEncoding
}
