package match_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// words are common English words, about as often as they are used.
var words = strings.Fields(`the the the the the the of of of and and and a a a to to to in in in is is you that it it he was for on are as
with his they I at be this have from or one had by word but not what all were we when your can said there use an each which she do how their
if will up other about out many then them these so some her would make like him into time has look two more write go see number no way could
people my than first water been call who oil its now find long down day did get come made may part over new sound take only little work know
place year live me back give most very after thing our just name good sentence man think say great where help through much before line right
too mean old any same tell boy follow came want show also around form three small set put end does another well large must big even such
because turn here why ask went men read need land different home us move try kind hand picture again change off play spell air away animal
house point page letter mother answer found study still learn should world information security password token secret account management
international understanding responsibility nevertheless characteristics`)

// prose is English-like text: sentences, paragraphs, now and then a number, a
// quote, a hyphen.
func prose(rng *rand.Rand, size int) []byte {
	var b strings.Builder
	for b.Len() < size {
		n := 4 + rng.IntN(16)
		for i := range n {
			w := words[rng.IntN(len(words))]
			if i == 0 {
				w = strings.ToUpper(w[:1]) + w[1:]
			}
			switch rng.IntN(60) {
			case 0:
				w = fmt.Sprint(rng.IntN(3000))
			case 1:
				w = `"` + w + `"`
			case 2:
				w += "-" + words[rng.IntN(len(words))]
			case 3, 4, 5, 6:
				w += ","
			}
			b.WriteString(w)
			if i < n-1 {
				b.WriteByte(' ')
			}
		}
		b.WriteString([]string{". ", ". ", ". ", "? ", ".\n\n"}[rng.IntN(5)])
	}
	return []byte(b.String()[:size])
}

// goSource is part of Go's own source.
func goSource(tb testing.TB, size int) []byte {
	var out []byte
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		tb.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(root)), "src", "net", "http", "*.go"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no Go source under %s: %v", root, err)
	}
	for i := 0; len(out) < size; i++ {
		b, err := os.ReadFile(files[i%len(files)])
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, b...)
	}
	return out[:size]
}

// jsonLogs are the lines that a web server writes.
func jsonLogs(rng *rand.Rand, size int) []byte {
	var b strings.Builder
	for at := int64(1_720_000_000_000); b.Len() < size; at += rng.Int64N(900) {
		fmt.Fprintf(&b, `{"ts":%d,"level":"info","msg":"request served","method":"GET","path":"/v1/items/%d","status":200,"ms":%.3f,"peer":"10.%d.%d.%d","id":"%016x"}`+"\n",
			at, rng.IntN(100000), rng.Float64()*40, rng.IntN(256), rng.IntN(256), 1+rng.IntN(254), rng.Uint64())
	}
	return []byte(b.String()[:size])
}

// logs are the lines of a build and of a system, as people read them.
func logs(rng *rand.Rand, size int) []byte {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		switch rng.IntN(4) {
		case 0:
			fmt.Fprintf(&b, "Nov 30 22:%02d:%02d build-%d systemd[%d]: Started %s.service - %s.\n", n/60%60, n%60, rng.IntN(20), 1+rng.IntN(30000), words[rng.IntN(len(words))], words[rng.IntN(len(words))])
		case 1:
			fmt.Fprintf(&b, "ok  \tgithub.com/acme/%s/internal/%s\t%.3fs\n", words[rng.IntN(len(words))], words[rng.IntN(len(words))], rng.Float64()*9)
		case 2:
			fmt.Fprintf(&b, "10.%d.%d.%d - - [30/Nov/2026:22:%02d:%02d +0000] \"GET /%s/%d HTTP/1.1\" 200 %d\n", rng.IntN(256), rng.IntN(256), rng.IntN(256), n/60%60, n%60, words[rng.IntN(len(words))], rng.IntN(9999), rng.IntN(99999))
		default:
			fmt.Fprintf(&b, "#%d sha256:%016x%016x%016x%016x %d.%dMB / %dMB %d.%ds\n", n, rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.Uint64(), rng.IntN(90), rng.IntN(10), rng.IntN(90), rng.IntN(9), rng.IntN(10))
		}
	}
	return []byte(b.String()[:size])
}
