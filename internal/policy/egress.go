package policy

import (
	"fmt"

	"github.com/stoplog/stoplog/internal/tool"
)

// Zone is where a model runs, as far from its owner as it is: a later zone may
// see less.
type Zone uint8

// The zones.
const (
	Local    Zone = iota // on this machine
	Private              // in the owner's network
	External             // somebody else's
)

var zoneNames = [...]string{"local", "private", "external"}

func (z Zone) String() string { return zoneNames[z] }

// ParseZone reads a zone.
func ParseZone(s string) (Zone, error) {
	for z, name := range zoneNames {
		if s == name {
			return Zone(z), nil
		}
	}
	return External, fmt.Errorf("%q is not a zone: want local, private or external", s)
}

// Ceilings are the highest class that each zone may see. The zero value allows
// none.
type Ceilings [len(zoneNames)]tool.Class

// DefaultCeilings are those that a profile may lower.
func DefaultCeilings() Ceilings {
	return Ceilings{Local: tool.Secret, Private: tool.Personal, External: tool.Internal}
}

// Admits reports whether data of a class may reach the worst of the zones. Data
// that reaches none may not be sent; one of no class is of the highest.
func (c Ceilings) Admits(class tool.Class, zones ...Zone) bool {
	if len(zones) == 0 || class == 0 {
		return false
	}
	for _, z := range zones {
		if class > c[z] {
			return false
		}
	}
	return true
}

// Worst is the zone that counts of those that a request could reach.
func Worst(zones ...Zone) Zone {
	worst := Local
	for _, z := range zones {
		worst = max(worst, z)
	}
	return worst
}
