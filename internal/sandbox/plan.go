package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Plan is what a [Spec] comes to on this machine, now: what the kernel is told.
type Plan struct {
	// Program is the file that is executed.
	Program string
	Dir     string
	// Grants are sorted by path; there is one for each.
	Grants []Grant
	// Covered are the denied places that lie in what is granted. The program finds
	// an empty directory there, or an empty file.
	Covered []string

	root  string
	dirs  []string // relative to root, to be made
	files []string // likewise
}

// Grant is one file or directory, its links resolved. A directory is granted
// with everything in it.
type Grant struct {
	Path             string
	Read, Write, Run bool
	Dir              bool
	// Why is the pattern that it comes from, or what it is for.
	Why string
}

// rights of a grant.
type rights struct{ read, write, run bool }

var (
	mayRead  = rights{read: true}
	mayWrite = rights{read: true, write: true}
	mayRun   = rights{read: true, run: true}
)

// planner makes a Plan.
type planner struct {
	Plan
	denied []string
	path   []string // the directories in which programs are looked up
}

// Resolve says what would be enforced, and starts nothing. What is missing and
// would be made is not made yet. The error is a [*RefusedError] of the part
// "scope".
func (s Spec) Resolve() (Plan, error) {
	p := planner{denied: resolved(slices.Concat(Denied(), s.Deny)), path: searchPath(s.Env)}
	if err := p.resolve(s); err != nil {
		return Plan{}, &RefusedError{"scope", err}
	}
	slices.SortFunc(p.Grants, func(a, b Grant) int { return strings.Compare(a.Path, b.Path) })
	return p.Plan, p.cover()
}

func (p *planner) resolve(s Spec) error {
	if err := p.place(s); err != nil {
		return err
	}
	for _, text := range s.Scope.Read {
		if err := p.pattern(text, mayRead); err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
	for _, text := range s.Scope.Write {
		if err := p.pattern(text, mayWrite); err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	for _, text := range s.Scope.Run {
		if err := p.runnable(text); err != nil {
			return fmt.Errorf("run: %w", err)
		}
	}
	for _, own := range []struct {
		paths  []string
		rights rights
	}{{s.Read, mayRead}, {s.Write, mayWrite}, {s.Run, mayRun}} {
		for _, name := range own.paths {
			if err := p.optional(name, own.rights, "the caller"); err != nil {
				return err
			}
		}
	}
	if err := p.program(s); err != nil {
		return err
	}
	return p.system()
}

// place finds the root and the working directory.
func (p *planner) place(s Spec) error {
	if !filepath.IsAbs(s.Scope.Root) {
		return fmt.Errorf("the root %q is not an absolute path", s.Scope.Root)
	}
	root, err := filepath.EvalSymlinks(s.Scope.Root)
	if err != nil {
		return fmt.Errorf("the root: %w", err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return fmt.Errorf("the root %s is not a directory", root)
	}
	p.root, p.Dir = root, root
	if s.Dir != "" {
		if p.Dir, err = filepath.EvalSymlinks(s.Dir); err != nil {
			return fmt.Errorf("the working directory: %w", err)
		}
	}
	if !filepath.IsAbs(p.Dir) || !inside(root, p.Dir) {
		return fmt.Errorf("the working directory %s is outside of the root %s", p.Dir, root)
	}
	return nil
}

// pattern grants what a pattern of the scope stands for.
func (p *planner) pattern(text string, r rights) error {
	pat, err := parsePattern(text)
	if err != nil {
		return err
	}
	switch {
	case pat.plain(), pat.whole():
		return p.literal(pat, r)
	case r.write:
		if pat.literal == 0 {
			return fmt.Errorf("pattern %q would open the whole root to writing: begin it with a directory", text)
		}
		return p.literal(pat, r)
	}
	files, err := pat.files(p.root)
	if err != nil {
		return err
	}
	for _, name := range files {
		real, err := filepath.EvalSymlinks(filepath.Join(p.root, name))
		if err != nil || !inside(p.root, real) || p.denial(real) != "" {
			continue // links that lead nowhere, or out; what is denied
		}
		if err := p.grant(real, r, text); err != nil {
			return err
		}
	}
	return nil
}

// literal grants the file or directory in front of a pattern's first wildcard.
func (p *planner) literal(pat pattern, r rights) error {
	name := filepath.Join(p.root, pat.front())
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !r.write {
			return nil // nothing there, so nothing to grant
		}
		return p.missing(pat, r)
	}
	if err != nil {
		return err
	}
	if !inside(p.root, real) {
		return fmt.Errorf("pattern %q leads out of the root through a symbolic link", pat.text)
	}
	return p.grant(real, r, pat.text)
}

// missing grants what is to be made: a directory, or an empty file.
func (p *planner) missing(pat pattern, r rights) error {
	parent, rest := filepath.Join(p.root, pat.front()), ""
	for {
		if _, err := os.Lstat(parent); err == nil {
			break
		}
		rest = filepath.Join(filepath.Base(parent), rest)
		parent = filepath.Dir(parent)
	}
	real, err := filepath.EvalSymlinks(parent)
	if err != nil {
		return fmt.Errorf("pattern %q leads through a symbolic link to nowhere", pat.text)
	}
	if !inside(p.root, real) {
		return fmt.Errorf("pattern %q leads out of the root through a symbolic link", pat.text)
	}
	name := filepath.Join(real, rest)
	rel, err := filepath.Rel(p.root, name)
	if err != nil {
		return err
	}
	if pat.plain() {
		p.files = append(p.files, rel)
	} else {
		p.dirs = append(p.dirs, rel)
	}
	return p.add(Grant{Path: name, Read: r.read, Write: r.write, Dir: !pat.plain(), Why: pat.text})
}

// optional grants a path that the caller names; what is missing is left out.
func (p *planner) optional(name string, r rights, why string) error {
	if !filepath.IsAbs(name) {
		return fmt.Errorf("%s grants %q, which is not an absolute path", why, name)
	}
	real, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.grant(real, r, why)
}

// grant grants a path without links.
func (p *planner) grant(real string, r rights, why string) error {
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	return p.add(Grant{Path: real, Read: r.read, Write: r.write, Run: r.run, Dir: info.IsDir(), Why: why})
}

// add adds a grant, or what is new of it to the one for the same path.
func (p *planner) add(g Grant) error {
	if d := p.denial(g.Path); d != "" {
		return fmt.Errorf("%s (%s) is in %s, which is always denied", g.Path, g.Why, d)
	}
	for i := range p.Grants {
		if have := &p.Grants[i]; have.Path == g.Path {
			have.Read, have.Write, have.Run = have.Read || g.Read, have.Write || g.Write, have.Run || g.Run
			if !strings.Contains(have.Why, g.Why) {
				have.Why += ", " + g.Why
			}
			return nil
		}
	}
	p.Grants = append(p.Grants, g)
	return nil
}

// denial is the denied place that a path is in; empty if it is in none.
func (p *planner) denial(name string) string {
	for _, d := range p.denied {
		if inside(d, name) {
			return d
		}
	}
	return ""
}

// cover finds the denied places inside of what is granted. One that is not there
// can not be covered, so nothing may be written where it could be made.
func (p *planner) cover() error {
	for _, d := range p.denied {
		real, err := filepath.EvalSymlinks(d)
		there := err == nil && real == d
		for _, g := range p.Grants {
			if !g.Dir || !inside(g.Path, d) {
				continue
			}
			if there && !slices.Contains(p.Covered, d) {
				p.Covered = append(p.Covered, d)
			}
			if !there && g.Write {
				return &RefusedError{"scope", fmt.Errorf("write: %s (%s) could make %s, which is always denied: name a directory that does not hold it", g.Path, g.Why, d)}
			}
		}
	}
	return nil
}

// prepare makes what a plan needs and the root lacks. It returns the files that
// it made.
func (p Plan) prepare() (made []string, err error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, fmt.Errorf("open the scope's root: %w", err)
	}
	defer root.Close()
	for _, dir := range p.dirs {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make a directory to write to: %w", err)
		}
	}
	for _, name := range p.files {
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return made, fmt.Errorf("make a directory to write to: %w", err)
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return made, fmt.Errorf("make a file to write to: %w", err)
		}
		f.Close()
		made = append(made, name)
	}
	return made, nil
}

// tidy removes the files that prepare made and that are still empty.
func (p Plan) tidy(made []string) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return // the root is gone, and the files with it
	}
	defer root.Close()
	for _, name := range made {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			root.Remove(name)
		}
	}
}
