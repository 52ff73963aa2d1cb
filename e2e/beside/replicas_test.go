package beside

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// TestStorageNetworkIsNotLeftUnderReplicas changes the storage network under an attached
// volume. Longhorn alone accepts the change, looks for the addresses of running replicas
// by the new value (GetStorageIPFromPod), and faults the volume. Fairlead refuses the
// change until the volume is detached.
func TestStorageNetworkIsNotLeftUnderReplicas(t *testing.T) {
	for name, value := range map[string]string{"for another network": NetworkB, "for no network": ""} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(s scene) {
				s.set(StorageNetwork, NetworkA)
				s.must(s.waitNetworks("", OnStorage(NetworkA), one.installed))
				s.volume("pvc-data", "rwo")
				s.must(s.waitText(s.ctx, "healthy", "Volume", "pvc-data", "status", "robustness"))
				err := s.Set(s.ctx, StorageNetwork, value)
				if !one.installed {
					s.must(err)
					s.must(s.Manager.Restart(s.ctx)) // it looks at every replica; else the next event of a replica does harm
					s.must(eventually.Until(s.ctx, "harm, which the refusal is for", time.Minute, func() error { return s.harmed("pvc-data") }))
					s.release("pvc-data")
					s.lookAgain() // else the setting stays unapplied for an hour
					return
				}
				if err == nil || !strings.Contains(err.Error(), "Attached: pvc-data") {
					s.Fatalf("the change is not refused: %v", err)
				}
				s.release("pvc-data")
				s.set(StorageNetwork, value)
				on := ""
				if value != "" {
					on = OnStorage(value)
				}
				s.must(s.waitNetworks("", on, true))
			})
		})
	}
}

// harmed is nil once the volume is no longer attached or healthy.
func (s scene) harmed(volume string) error {
	out, err := s.Kubectl(s.ctx, "", "-n", Namespace, "get", "volumes.longhorn.io", volume, "-o", "jsonpath={.status.state} {.status.robustness}")
	if err == nil && strings.TrimSpace(out) == "attached healthy" {
		err = fmt.Errorf("%s is attached and healthy", volume)
	}
	return err
}
