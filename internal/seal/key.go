package seal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	keySize   = 32
	nonceSize = 24
	tagSize   = 16
)

// A key is an AES-256 key, ready to make the keys of sealings.
type key struct {
	id    string
	block cipher.Block
	mask  [aes.BlockSize]byte // CMAC's K1
}

func newKey(secret []byte) (*key, error) {
	id, err := hkdf.Key(sha256.New, secret, nil, "stoplog seal key id", 8)
	if err != nil {
		return nil, err
	}
	k := &key{id: hex.EncodeToString(id)}
	if k.block, err = aes.NewCipher(secret); err != nil {
		return nil, err
	}
	k.block.Encrypt(k.mask[:], k.mask[:])
	carry := k.mask[0] >> 7
	for i := range k.mask {
		next := byte(0)
		if i+1 < len(k.mask) {
			next = k.mask[i+1] >> 7
		}
		k.mask[i] = k.mask[i]<<1 | next
	}
	k.mask[len(k.mask)-1] ^= carry * 0x87
	return k, nil
}

// derive makes the key of one sealing: two blocks of CMAC in counter mode over the
// nonce's first half, as XAES-256-GCM has it.
func (k *key) derive(half []byte) (cipher.AEAD, error) {
	var derived [keySize]byte
	for i := range 2 {
		block := derived[i*aes.BlockSize:][:aes.BlockSize]
		copy(block, []byte{0, byte(i + 1), 'X', 0})
		copy(block[4:], half)
		for j := range block {
			block[j] ^= k.mask[j]
		}
		k.block.Encrypt(block, block)
	}
	block, err := aes.NewCipher(derived[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// NewKey returns a line of a key file with a new key.
func NewKey() string {
	var secret [keySize]byte
	rand.Read(secret[:]) // never fails
	return hex.EncodeToString(secret[:]) + "\n"
}

// Parse reads the keys of a file: 64 hex digits a line, the newest last. A line
// that begins with # is a comment. Its error names lines and never what is in them.
func Parse(text []byte) (*Ring, error) {
	r := &Ring{}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		s := strings.TrimSpace(string(line))
		if s == "" || s[0] == '#' {
			continue
		}
		secret, err := hex.DecodeString(s)
		if err != nil || len(secret) != keySize {
			return nil, fmt.Errorf("line %d is not a key: want %d hex digits, as `stoplog seal-key` writes them", n, 2*keySize)
		}
		if weak(secret) {
			return nil, fmt.Errorf("line %d is a key that anybody can guess: make one with `stoplog seal-key`", n)
		}
		k, err := newKey(secret)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		for _, before := range r.keys {
			if before.id == k.id {
				return nil, fmt.Errorf("line %d is a key that stood before: keep one", n)
			}
		}
		r.keys = append(r.keys, k)
	}
	if len(r.keys) == 0 {
		return nil, errors.New("there is no key in it: make one with `stoplog seal-key`")
	}
	return r, nil
}

// weak reports whether a key is one byte, over and over.
func weak(secret []byte) bool { return bytes.Count(secret, secret[:1]) == len(secret) }
