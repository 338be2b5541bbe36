package sandbox

// Plan is what a [Spec] comes to on this machine, now: what the kernel is told.
type Plan struct {
	// Program is the file that is executed.
	Program string
	Dir     string
	Grants  []Grant
	// Denied are the places that are covered, or that no grant includes.
	Denied []string
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

// Resolve says what would be enforced, and starts nothing. What is missing and
// would be made is not made. The error is a [*RefusedError] of the part "scope".
func (s Spec) Resolve() (Plan, error) { return Plan{}, nil }

// Denied are the places that no program gets to see, whatever its scope: keys
// and tokens in the homes of this user, and the system's.
func Denied() []string { return nil }
