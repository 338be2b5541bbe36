package dial

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	hosts := Hosts("127.0.0.1:"+port, "localhost:"+port)
	for _, address := range []string{"127.0.0.1:" + port, "localhost:" + port, "LOCALHOST:" + port} {
		c, err := hosts(t.Context(), "tcp", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		c.Close()
	}
	for _, address := range []string{"127.0.0.1:1", "127.0.0.2:" + port, "other.test:443", ""} {
		var refused *RefusedError
		if c, err := hosts(t.Context(), "tcp", address); !errors.As(err, &refused) {
			t.Errorf("%s: %v, %v", address, c, err)
		}
	}
}

// What a name leads to is judged by its address.
func TestOnlyPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true, "127.0.0.1:443": false, "[::1]:443": false, "10.1.2.3:443": false,
		"192.168.0.1:443": false, "172.16.0.1:443": false, "169.254.169.254:80": false, "[fe80::1]:443": false, "[fd00:ec2::254]:80": false,
		"0.0.0.0:443": false, "100.100.100.200:80": false, "[::ffff:10.0.0.1]:443": false, "[64:ff9b::a00:1]:443": false,
		"224.0.0.1:443": false, "255.255.255.255:443": false, "nonsense": false,
	} {
		err := onlyPublic(t.Context(), "tcp", address, nil)
		if got := err == nil; got != want {
			t.Errorf("%s: %v", address, err)
		}
		if err != nil && !strings.Contains(err.Error(), "public addresses") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
