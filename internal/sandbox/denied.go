package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
)

// secretsOfHomes are where programs keep keys and tokens in a home.
var secretsOfHomes = []string{
	".anthropic", ".aws", ".azure", ".bash_history", ".cargo/credentials", ".cargo/credentials.toml", ".claude", ".claude.json",
	".config/gcloud", ".config/gh", ".config/git/credentials", ".config/op", ".config/rclone", ".config/sops", ".docker",
	".git-credentials", ".gnupg", ".kube", ".local/share/keyrings", ".local/state/stoplog", ".netrc", ".npmrc", ".password-store", ".pgpass", ".pypirc",
	".ssh", ".terraform.d", ".vault-token", ".zsh_history",
}

// secretsOfTheSystem are those that belong to the machine.
var secretsOfTheSystem = []string{
	"/etc/NetworkManager/system-connections", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab", "/etc/kubernetes", "/etc/letsencrypt",
	"/etc/openvpn", "/etc/pki/tls/private", "/etc/security/opasswd", "/etc/shadow", "/etc/shadow-", "/etc/ssh", "/etc/ssl/private",
	"/etc/sudoers", "/etc/sudoers.d", "/etc/wireguard", "/run/secrets", "/var/lib/kubelet", "/var/run/secrets",
}

// Denied are the places that no program gets to see, whatever its scope: where
// programs keep keys and tokens in the homes of this user, the system's, and where
// Stoplog keeps its state. They need not be there.
func Denied() []string {
	denied := slices.Clone(secretsOfTheSystem)
	if state := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		denied = append(denied, filepath.Join(state, "stoplog"))
	}
	for _, home := range homes() {
		for _, secret := range secretsOfHomes {
			denied = append(denied, filepath.Join(home, secret))
		}
	}
	return denied
}

// homes are the homes of this user: the one that the environment names, and the
// one that the system knows.
func homes() []string {
	var found []string
	add := func(home string) {
		if filepath.IsAbs(home) && home != "/" && !slices.Contains(found, filepath.Clean(home)) {
			found = append(found, filepath.Clean(home))
		}
	}
	add(os.Getenv("HOME"))
	if u, err := user.Current(); err == nil {
		add(u.HomeDir)
	}
	return found
}

// resolved are paths, and beside each what it leads to.
func resolved(paths []string) []string {
	var all []string
	for _, p := range paths {
		all = append(all, filepath.Clean(p))
		if real, err := filepath.EvalSymlinks(p); err == nil && real != p {
			all = append(all, real)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
