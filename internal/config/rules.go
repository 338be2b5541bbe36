package config

import (
	"slices"
	"sync"

	"github.com/stoplog/stoplog/guard/rules"
)

// ruleIDs names the rules of all packs.
var ruleIDs = sync.OnceValue(func() []string {
	var ids []string
	for _, name := range rules.Names() {
		pack, _ := rules.Pack(name)
		for _, rule := range pack {
			ids = append(ids, rule.ID)
		}
	}
	return ids
})

// isRule says whether name is a pack or a rule.
func isRule(name string) bool {
	return slices.Contains(rules.Names(), name) || slices.Contains(ruleIDs(), name)
}
