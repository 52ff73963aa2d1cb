package fence

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// A fence that would be refused because of its identity is reported while the node is healthy.
func TestHealthyNodeSaysWhyItCannotBeFenced(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*story)
		says   string // "" is Ready
	}{
		"as it should be": {func(*story) {}, ""},
		"a secret instead of a class": {func(s *story) {
			s.Ledger[0].Class, s.Ledger[0].Secret = "", &v1alpha1.SecretReference{Name: "s", Namespace: "n"}
		}, ""},
		"no credentials": {func(s *story) { s.Ledger[0].Class = "" }, "there is neither a NetworkFenceClass nor a provisioner's secret"},
		"a wide mask":    {func(s *story) { s.Ledger[0].Addresses[0].CIDR = "10.0.0.0/24" }, "10.0.0.0/24 is wider than one address"},
		"a problem": {func(s *story) {
			s.Status.Identities, s.Ledger[0].Addresses, s.Ledger[0].Problem = nil, nil, "no client pod"
		}, "no client pod"},
		"outside the ranges": {func(s *story) {
			s.store(StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
		}, "10.0.0.1 is outside this cluster's clientRanges"},
		"guard only": {func(s *story) { s.mode(ModeGuard).Ledger[0].Class = "" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t).do(test.change).look()
			if test.says == "" {
				s.wantHealthy()
				return
			}
			s.wantPhase(v1alpha1.NodeHealthy, ReasonNotFenceable).wantThat(strings.Contains(s.Status.Message, test.says), test.says)
			drilled, _ := Drill(s.Facts)
			s.wantThat(drilled[0].Fence == nil, "the drill refuses to fence the node")
		})
	}
}
