package config

// Rate is how much may begin in a minute, of all that bears a label.
type Rate struct {
	Kind string // key, team, app or user
	Name string // of the label; `*` for each that has no rate of its own
	// Requests and Tokens are the most in a minute; 0 is no limit.
	Requests, Tokens int64
}

type rateDecl struct {
	kind             string
	name             at[string]
	requests, tokens at[int64]
}

// rateKinds are what rates are of, by the key under which they stand.
var rateKinds = []struct{ key, kind string }{{"keys", "key"}, {"teams", "team"}, {"apps", "app"}, {"users", "user"}}

// rates reads rates by what they are of.
func (d decoder) rates(n node) []rateDecl {
	var all []rateDecl
	members, _ := d.members(n, ratesShape)
	for _, m := range members {
		for _, k := range rateKinds {
			if k.key != m.Key || !d.is(m.Value, mapping, m.Key) {
				continue
			}
			for _, item := range d.unique(m.Value.Members) {
				if !isBudgetName(item.Key) {
					d.Errorf(item.Span, "", "%q cannot be the name of what a rate is of", item.Key)
					continue
				}
				all = append(all, d.rate(k.kind, item))
			}
		}
	}
	return all
}

func (d decoder) rate(kind string, item member) rateDecl {
	r := rateDecl{kind: kind, name: at[string]{item.Key, item.Span, true}}
	members, flawed := d.members(item.Value, rateShape)
	for _, m := range members {
		switch m.Key {
		case "requests":
			r.requests = d.integer(m.Value, m.Key, 1, 1<<30)
		case "tokens":
			r.tokens = d.integer(m.Value, m.Key, 1, 1<<40)
		}
	}
	if len(members) == 0 && !flawed {
		d.Errorf(item.Span, "write requests: N, tokens: N, or both", "the rate of %q limits nothing", item.Key)
	}
	return r
}

func (s *resolver) rates() []Rate {
	var all []Rate
	for _, d := range s.doc.rates {
		all = append(all, Rate{d.kind, d.name.value, d.requests.value, d.tokens.value})
	}
	return all
}

// printedRates gives rates in the shape of the file.
func printedRates(rates []Rate) object {
	o := object{}
	for _, k := range rateKinds {
		of := object{}
		for _, r := range rates {
			if r.Kind != k.kind {
				continue
			}
			limits := object{}
			if r.Requests > 0 {
				limits = append(limits, field{"requests", r.Requests})
			}
			if r.Tokens > 0 {
				limits = append(limits, field{"tokens", r.Tokens})
			}
			of = append(of, field{r.Name, limits})
		}
		if len(of) > 0 {
			o = append(o, field{k.key, of})
		}
	}
	return o
}
