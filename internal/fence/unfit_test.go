package fence

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// What would be refused for the identity's own sake is said while the node is healthy.
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
			s.Status.Identities, s.Ledger[0].Addresses, s.Ledger[0].Problem = nil, nil, "no client pod is on the node"
		}, "no client pod is on the node"},
		"outside the ranges": {func(s *story) {
			s.Policy = with(s.Policy, StoragePolicy{Mode: ModeFence, ClientRanges: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}})
		}, "10.0.0.1 is outside this cluster's clientRanges"},
		"guard only": {func(s *story) {
			s.Ledger[0].Class, s.Policy = "", with(s.Policy, StoragePolicy{Mode: ModeGuard})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(t)
			test.change(s)
			s.look()
			reason := ReasonReady
			if test.says != "" {
				reason = ReasonNotFenceable
			}
			if s.Status.Phase != v1alpha1.NodeHealthy || s.Status.Reason != reason || !strings.Contains(s.Status.Message, test.says) {
				t.Fatalf("the node is %s (%s): %s", s.Status.Phase, s.Status.Reason, s.Status.Message)
			}
			if drilled, _ := Drill(s.Facts); test.says != "" && drilled[0].Fence != nil {
				t.Errorf("the drill would fence it: %+v", drilled[0].Fence)
			}
		})
	}
}
