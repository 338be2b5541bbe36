package dial

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
)

// Hosts gives a function that connects to the places in hosts, each a HOST:PORT,
// and to no other. A name that leads to an address that is not public (this
// machine, a private network, a cloud's metadata) is refused, whoever answers for
// it: such a place is allowed by its address, or as localhost, alone.
func Hosts(hosts ...string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		if !slices.ContainsFunc(hosts, func(h string) bool { return strings.EqualFold(h, address) }) {
			return nil, &RefusedError{Target: address, Allowed: hosts}
		}
		d := &net.Dialer{Timeout: connectTimeout}
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		switch _, notAnAddress := netip.ParseAddr(host); {
		case strings.EqualFold(host, "localhost"):
			d.ControlContext = onlyLoopback
		case notAnAddress != nil:
			d.ControlContext = onlyPublic
		}
		return d.DialContext(ctx, "tcp", address)
	}
}

// notPublic are what netip does not call private, and what is not public either.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // shared by a carrier's customers
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), // for measurements
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), // an IPv4 address, whichever
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("2002::/16"), // likewise
}

// onlyPublic is the last word, on the address that a name has come to.
func onlyPublic(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	addr := ap.Addr().Unmap()
	if err != nil || !addr.IsGlobalUnicast() || addr.IsPrivate() ||
		slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return &RefusedError{Target: address, Allowed: []string{"public addresses"}}
	}
	return nil
}
