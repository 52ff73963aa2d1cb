package beside

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// Maintenance windows of the configuration, all day long and twelve hours from now.
const openWindow = `{start: "00:00", length: 24h}`

func closedWindow() string {
	return fmt.Sprintf(`{start: %q, length: 1h}`, time.Now().UTC().Add(12*time.Hour).Format("15:04"))
}

// TestServerThatFailsOverStaysOnItsNetwork changes from one network to another while no
// volume is attached and the maintenance window is closed. A volume that is attached
// meanwhile is served on the old network, whatever restarts, until the window opens.
// It takes a minute and a half.
func TestServerThatFailsOverStaysOnItsNetwork(t *testing.T) {
	s := with(t)
	s.set(StorageNetwork, NetworkA)
	s.set(StorageNetworkForRWX, "true")
	s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
	s.configure("", closedWindow())
	closed := s.mark()
	s.set(StorageNetwork, NetworkB)
	s.waitPhase("Waiting")
	s.volume("pvc-stays", "rwx")
	stays := func(when string) {
		s.Helper()
		s.expectMountable("pvc-stays")
		if err := s.servedOn("pvc-stays", s.On(NetworkA)); err != nil {
			s.Errorf("%s: %v", when, err)
		}
	}
	stays("attached while the window is closed")
	s.failOver("pvc-stays")
	stays("failed over")
	s.must(s.Manager.Restart(s.ctx))
	stays("the manager restarted")
	s.must(s.DeployDriver(s.ctx)) // as an upgrade of Longhorn does
	stays("the driver was deployed again")
	s.release("pvc-stays")
	s.waitPhase("Waiting")
	for _, w := range s.since(closed, pluginRestarts) {
		s.Errorf("restarted while the window was closed: %s", w)
	}

	s.configure("", openWindow)
	s.must(s.waitNetworks(s.On(NetworkB), OnStorage(NetworkB), true))
	s.must(s.Use(s.ctx, "pvc-stays"))
	s.must(s.mountable("pvc-stays"))
	s.must(s.servedOn("pvc-stays", s.On(NetworkB)))
}

// pluginRestarts are deletions of CSI plugin pods, but for those whose DaemonSet the
// deployer has replaced.
func pluginRestarts(w sandbox.Write) bool {
	return w.Verb == "delete" && w.Resource == "pods" && strings.HasPrefix(w.Name, "longhorn-csi-plugin-") && w.Code < 300 &&
		w.Writer() != "kwok" && w.Writer() != "generic-garbage-collector"
}
