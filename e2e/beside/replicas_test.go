package beside

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestReplicasStayWhileStorageNetworkWaits changes the storage network under an attached
// volume. Longhorn looks for the addresses of running replicas by the setting's value
// (GetStorageIPFromPod), applied or not, and takes those at other addresses for unknown.
func TestReplicasStayWhileStorageNetworkWaits(t *testing.T) {
	for name, value := range map[string]string{"another network": NetworkB, "no network": ""} {
		t.Run(name, func(t *testing.T) {
			eachWay(t, func(s scene) {
				s.set(StorageNetwork, NetworkA)
				s.must(s.waitNetworks("", NetworkA+"@lhnet1", one.installed))
				s.volume("pvc-data", "rwo")
				s.must(s.waitText(s.ctx, "healthy", "Volume", "pvc-data", "status", "robustness"))
				if err := s.Set(s.ctx, StorageNetwork, value); err != nil {
					s.Logf("the change is refused: %v", err)
				}
				// Longhorn asks its engines every five seconds.
				err := s.Eventually(s.ctx, "harm", 30*time.Second, func() error { return s.unharmed("pvc-data") })
				if err == nil {
					s.report(s.harm("pvc-data"))
				}
			})
		})
	}
}

// unharmed is nil once the volume is no longer attached or healthy.
func (s scene) unharmed(volume string) error {
	if s.harm(volume) != nil {
		return nil
	}
	return fmt.Errorf("%s is attached and healthy", volume)
}

func (s scene) harm(volume string) error {
	out, err := s.Kubectl(s.ctx, "", "-n", Namespace, "get", "volumes.longhorn.io", volume, "-o", "jsonpath={.status.state} {.status.robustness}")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) == "attached healthy" {
		return nil
	}
	return fmt.Errorf("%s is %s", volume, out)
}
