package config

import (
	"slices"
	"strings"

	"github.com/stoplog/stoplog/internal/diag"
)

// resolver turns declarations into what is in force.
type resolver struct {
	*reader
	doc document
	// The declared ones over the built-in ones.
	upstreams []Upstream
	guards    []Guard
	profiles  map[string]Profile
	own       []Pack
	warnings  diag.List
}

// resolve checks and completes the declarations. What it gives is in force only
// if the reader's list is empty.
func resolve(r *reader, doc document) *Config {
	c := Builtin()
	s := &resolver{reader: r, doc: doc, upstreams: c.Upstreams, guards: c.Guards, profiles: map[string]Profile{}}
	c.File = r.File
	s.listen(c)
	if doc.store.set {
		c.Store = s.store()
	}
	c.Seal = s.sealKey(doc.seal)
	c.Tickets = s.tickets(doc.tickets)
	if doc.maxBody.set {
		c.MaxBodyBytes = doc.maxBody.value
	}
	s.own = s.packs(doc.rules)
	c.Packs = s.own
	for _, u := range doc.upstreams {
		s.upstreams = replace(s.upstreams, s.upstream(u), upstreamName)
	}
	for _, g := range doc.guards {
		s.guards = replace(s.guards, s.guard(g), guardName)
	}
	for _, p := range doc.profiles {
		s.profile(p, nil)
	}
	c.Gateway = s.gateway()
	s.budgets(c)
	c.Rates = s.rates()
	s.keepInUse(c)
	s.judgesOf(c)
	c.Warnings = s.warnings
	c.Warnings.Sort()
	return c
}

func upstreamName(u Upstream) string { return u.Name }
func guardName(g Guard) string       { return g.Name }

// replace puts t in the place of the element of its name, or at the end.
func replace[T any](all []T, t T, name func(T) string) []T {
	if i := slices.IndexFunc(all, func(u T) bool { return name(u) == name(t) }); i >= 0 {
		all[i] = t
		return all
	}
	return append(all, t)
}

func (s *resolver) warnf(at diag.Span, hint, format string, args ...any) {
	s.warnings = append(s.warnings, s.Diagnostic(at, hint, format, args...))
}

// noSuch reports a name that nothing bears. The hint lists the known names; the
// suggestion may also be one of more.
func (s *resolver) noSuch(what string, name at[string], known []string, more ...string) {
	hint := "known here: " + strings.Join(known, ", ")
	if near := diag.Suggest(name.value, slices.Concat(known, more)); near != "" {
		hint = didYouMean(near) + " " + hint
	}
	s.Errorf(name.span, hint, "unknown %s %q", what, name.value)
}

// keepInUse puts the upstreams, guards and profiles into c: those that are
// declared, and those that are built in and that something uses. What is
// declared and not used is not what its author thinks: a warning says so.
func (s *resolver) keepInUse(c *Config) {
	c.Profiles = nil
	if p := s.profiles[defaultProfile]; !s.declares(defaultProfile) && c.Gateway.serves(defaultProfile) {
		c.Profiles = append(c.Profiles, p)
	}
	for _, d := range s.doc.profiles {
		c.Profiles = append(c.Profiles, s.profiles[d.name.value])
		if !c.Gateway.serves(d.name.value) && !s.isExtended(d.name.value) && s.profiles[d.name.value].Model == "" {
			s.warnf(d.name.span, "name it under gateway, or give it a model for runs of the loop",
				"no mount serves profile %q, and no run can use it", d.name.value)
		}
	}
	upstreams, guards := map[string]bool{}, map[string]bool{}
	for _, p := range c.Profiles {
		for _, name := range p.Upstreams {
			upstreams[name] = true
		}
		for _, use := range slices.Concat(p.Input, p.Output) {
			guards[use.Guard] = true
		}
	}
	for _, d := range s.doc.upstreams {
		if !upstreams[d.name.value] {
			s.warnf(d.name.span, "name it in a profile's upstream", "no profile uses upstream %q", d.name.value)
		}
		upstreams[d.name.value] = true
	}
	for _, d := range s.doc.guards {
		if !guards[d.name.value] {
			s.warnf(d.name.span, "name it in a profile's input or output", "no profile uses guard %q", d.name.value)
		}
		guards[d.name.value] = true
	}
	c.Upstreams = slices.DeleteFunc(s.upstreams, func(u Upstream) bool { return !upstreams[u.Name] })
	c.Guards = slices.DeleteFunc(s.guards, func(g Guard) bool { return !guards[g.Name] })
}

func (s *resolver) declares(profile string) bool {
	return slices.ContainsFunc(s.doc.profiles, func(p profileDecl) bool { return p.name.value == profile })
}

func (s *resolver) isExtended(profile string) bool {
	return slices.ContainsFunc(s.doc.profiles, func(p profileDecl) bool { return p.extends.value == profile })
}

// gateway gives the mounts. A file that says nothing of them has both, on the
// profile `default`.
func (s *resolver) gateway() Gateway {
	decl := s.doc.gateway
	if decl == nil {
		span := s.doc.root
		if p, ok := s.declared(defaultProfile); ok {
			span = p.name.span
		}
		one := names{span: span, value: []at[string]{{defaultProfile, span, true}}, set: true}
		decl = &gatewayDecl{openai: one, anthropic: one}
	}
	return Gateway{
		OpenAI:    s.mount(OpenAI, decl.openai, decl.anthropic),
		Anthropic: s.mount(Anthropic, decl.anthropic, decl.openai),
	}
}

// mount checks the profiles that a mount names, the first of which serves it.
// Those of the other mount may be chosen too where they can serve this one.
func (s *resolver) mount(protocol string, own, others names) Mount {
	var m Mount
	for _, name := range own.value {
		p, ok := s.served(name)
		if !ok {
			continue
		}
		if !s.speaks(p, protocol) {
			s.Errorf(name.span, "add one to its upstream, or name the other mount alone: gateway: {MOUNT: PROFILE}",
				"profile %q has no upstream that speaks %s, and is to serve the mount /%[2]s", p.Name, protocol)
		}
		m.Choices = append(m.Choices, p.Name)
	}
	if len(m.Choices) == 0 {
		return m
	}
	m.Profile = m.Choices[0]
	for _, name := range others.value {
		p, ok := s.profiles[name.value]
		if ok && s.speaks(p, protocol) && !slices.Contains(m.Choices, p.Name) {
			m.Choices = append(m.Choices, p.Name)
		}
	}
	return m
}

// served gives the profile of that name: a declared one, or the built-in default.
func (s *resolver) served(name at[string]) (Profile, bool) {
	p, ok := s.profiles[name.value]
	if !ok && name.value == defaultProfile {
		p, ok = Builtin().Profiles[0], true
		s.profiles[defaultProfile] = p
	}
	if !ok {
		known := []string{defaultProfile}
		for _, d := range s.doc.profiles {
			known = append(known, d.name.value)
		}
		slices.Sort(known)
		s.noSuch("profile", name, slices.Compact(known))
	}
	return p, ok
}

// speaks says whether the profile has an upstream of the protocol.
func (s *resolver) speaks(p Profile, protocol string) bool {
	return slices.ContainsFunc(p.Upstreams, func(name string) bool {
		u, ok := named(s.upstreams, name, upstreamName)
		return ok && u.Protocol == protocol
	})
}

func (g Gateway) serves(profile string) bool {
	return slices.Contains(g.OpenAI.Choices, profile) || slices.Contains(g.Anthropic.Choices, profile)
}
