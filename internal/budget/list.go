package budget

import (
	_ "embed"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
)

//go:generate go test -run ^TestPricesPage$ . -update

//go:embed prices.txt
var listFile string

// List returns the built-in price list, a copy.
func List() Prices { return maps.Clone(list()) }

var list = sync.OnceValue(func() Prices {
	p, err := parseList(listFile)
	if err != nil {
		panic(err) // the file is a part of the program
	}
	return p
})

// parseList reads a price list; its first lines say how it is written.
func parseList(file string) (Prices, error) {
	prices := Prices{}
	var source, date, note string
	n := 0
	for line := range strings.Lines(file) {
		n++
		line = strings.TrimSpace(line)
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[0] == "#" || strings.HasPrefix(f[0], "#"):
			continue
		case f[0] == "=" && len(f) == 3:
			source, date, note = f[2], "", ""
			continue
		case f[0] == "-" && len(f) >= 2:
			date, note = f[1], strings.Join(f[2:], " ")
			continue
		}
		p, err := parsePrice(f)
		switch {
		case err != nil:
			return nil, fmt.Errorf("prices.txt:%d: %w", n, err)
		case source == "" || date == "":
			return nil, fmt.Errorf("prices.txt:%d: where and when was this read?", n)
		case prices[p.Model].Model != "":
			return nil, fmt.Errorf("prices.txt:%d: %s is listed twice", n, p.Model)
		}
		p.Source, p.Date, p.Note = source, date, note
		prices[p.Model] = p
	}
	return prices, nil
}

func parsePrice(f []string) (p Price, err error) {
	if len(f) != 6 && (len(f) != 13 || f[6] != ">") {
		return p, fmt.Errorf("want MODEL, five prices and perhaps > TOKENS and five more")
	}
	p.Model = f[0]
	if p.Rates, err = parseRates(f[1:6]); err != nil || len(f) == 6 {
		return p, err
	}
	if p.Above, err = strconv.ParseInt(f[7], 10, 64); err != nil {
		return p, err
	}
	p.Long, err = parseRates(f[8:])
	return p, err
}

func parseRates(f []string) (r Rates, err error) {
	for i, rate := range []*Rate{&r.Input, &r.CacheRead, &r.CacheWrite, &r.CacheWrite1h, &r.Output} {
		if *rate, err = ParseRate(f[i]); err != nil {
			return r, err
		}
	}
	return r, nil
}
