package sandbox

// The parts of the sandbox, as a [Report] and a [*RefusedError] name them.
const (
	partNamespaces   = "namespaces"
	partMounts       = "mounts"
	partProc         = "proc"
	partNetwork      = "network"
	partProcesses    = "processes"
	partLimits       = "limits"
	partCapabilities = "capabilities"
	partLandlock     = "landlock"
	partSeccomp      = "seccomp"
	partDescendants  = "descendants"
	partProgram      = "program"
)
