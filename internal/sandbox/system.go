package sandbox

import "path/filepath"

// systemFiles are what a dynamically linked program needs to start, to find a
// name, a user and the time, and to check a certificate. They may be read.
var systemFiles = []string{
	"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/local/lib", "/usr/local/share",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/crypto-policies", "/etc/gai.conf", "/etc/group",
	"/etc/host.conf", "/etc/hosts", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
	"/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/resolv.conf", "/etc/services",
	"/etc/ssl", "/etc/timezone",
	"/proc", // of the program's own namespace
	"/dev/random", "/dev/urandom",
}

// harmless are the devices that may be written to.
var harmless = []string{"/dev/full", "/dev/null", "/dev/zero"}

// loaders start dynamically linked programs. A loader runs what it can read:
// docs/sandbox.md says so.
var loaders = []string{"/lib/ld-linux*.so.*", "/lib64/ld-linux*.so.*", "/lib/ld-musl-*.so.1"}

// system grants what every program gets.
func (p *planner) system() error {
	const why = "every program"
	for _, name := range systemFiles {
		if err := p.optional(name, mayRead, why); err != nil {
			return err
		}
	}
	for _, name := range harmless {
		if err := p.optional(name, mayWrite, why); err != nil {
			return err
		}
	}
	for _, glob := range loaders {
		files, err := filepath.Glob(glob)
		if err != nil {
			return err
		}
		for _, name := range files {
			if err := p.optional(name, mayRun, "loads programs"); err != nil {
				return err
			}
		}
	}
	return nil
}
