package beside

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestInstanceManagerInUseIsNotDeleted has a change of storage-network wait for an RWO
// volume, and changes the network for RWX volumes meanwhile.
func TestInstanceManagerInUseIsNotDeleted(t *testing.T) {
	s := with(t)
	s.volume("pvc-rwo", "rwo")
	s.set(StorageNetwork, NetworkA)
	s.must(s.WaitApplied(s.ctx, StorageNetwork, false, settleTimeout))
	start := s.mark()
	refused := s.Set(s.ctx, StorageNetworkForRWX, "true")
	if refused != nil {
		s.Logf("the change is refused: %v", refused)
	} else {
		// Longhorn has acted on the value once the CSI plugin's template has its network.
		s.must(eventually.Until(s.ctx, "Longhorn to act on the value", settleTimeout, func() error {
			ds, err := s.Plugin(s.ctx)
			if err == nil && Requested(ds.Spec.Template.Annotations) == "" {
				err = fmt.Errorf("the CSI plugin's template has no network")
			}
			return err
		}))
	}
	s.must(s.Manager.Restart(s.ctx)) // it looks at all settings once more
	s.must(s.WaitVolume(s.ctx, "pvc-rwo", "attached"))
	for _, w := range s.since(start, func(w sandbox.Write) bool {
		return w.Verb == "delete" && w.Resource == "pods" && strings.HasPrefix(w.Name, "instance-manager-") ||
			w.Object() == "volumes/pvc-rwo" && strings.Contains(string(w.Response), `"state":"detach`)
	}) {
		if w.Code < 300 {
			s.Errorf("under an attached volume: %s", w)
		} else {
			s.Logf("held off: %s: %s", w, w.Message)
		}
	}
	s.release("pvc-rwo")
	if refused == nil {
		s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
	}
}
