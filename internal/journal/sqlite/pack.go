package sqlite

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// Payloads and snapshots are text, and the same words stand in several of them.
// What is worth it lies in the file deflated: behind the byte packed, with which
// no JSON text begins. Everything else lies there as it is.
const (
	packed = 0x01
	// packFrom is the size from which a payload takes less than the time of the
	// page that packing it may save.
	packFrom = 512
)

// deflater packs. Making one takes as much memory as a thousand payloads.
type deflater struct {
	buf bytes.Buffer
	w   *flate.Writer
}

var deflaters = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant that it knows
	}
	return &deflater{w: w}
}}

var inflaters = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// pack returns what is stored for a body.
func pack(body []byte) []byte {
	must := len(body) > 0 && body[0] == packed
	if len(body) < packFrom && !must {
		return body
	}
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	d.buf.Reset()
	d.buf.WriteByte(packed)
	d.w.Reset(&d.buf)
	// A bytes.Buffer takes everything.
	_, _ = d.w.Write(body)
	_ = d.w.Close()
	if d.buf.Len() > len(body)-len(body)/8 && !must {
		return body
	}
	return bytes.Clone(d.buf.Bytes())
}

// unpack returns the body of what was stored.
func unpack(stored []byte) ([]byte, error) {
	if len(stored) == 0 || stored[0] != packed {
		return stored, nil
	}
	r := inflaters.Get().(io.ReadCloser)
	defer inflaters.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(stored[1:]), nil); err != nil {
		return nil, fmt.Errorf("unpack %d bytes: %w", len(stored), err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack %d bytes: %w", len(stored), err)
	}
	return body, nil
}
