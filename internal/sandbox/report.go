package sandbox

// Report says what this machine can enforce.
type Report struct {
	// Holds says that programs can be run in a sandbox here.
	Holds bool `json:"holds"`
	// User says whether this was tried as root or as an ordinary user.
	User  string `json:"user"`
	Parts []Part `json:"parts"`
}

// Part is one part of the sandbox, and whether it held when it was tried.
type Part struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	// Detail says what was seen, and where it does not hold, what would help.
	Detail string `json:"detail"`
}
