package beside

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// TestVolumeCreatedWhileClientsRollIsMountable makes Multus late on the network, so that
// the clients' roll-out lasts, and creates and uses a volume in the midst of it.
func TestVolumeCreatedWhileClientsRollIsMountable(t *testing.T) {
	s := with(t)
	s.delayNetwork("3s")
	defer s.delayNetwork("")
	s.set(StorageNetwork, NetworkA)
	s.set(StorageNetworkForRWX, "true")
	s.waitPhase("RollingClients")
	s.must(s.CreateVolume(s.ctx, "pvc-midst", "rwx"))
	s.must(s.Use(s.ctx, "pvc-midst"))
	rollout, err := s.rollout()
	s.must(err)
	s.Logf("used while the roll-out was at %s: %s", rollout.Status.Phase, rollout.Status.Message)
	s.expectMountable("pvc-midst")
	s.waitAttachedByKubernetes("pvc-midst")
	s.must(s.Manager.Restart(s.ctx))
	s.failOver("pvc-midst")
	s.expectMountable("pvc-midst")
	s.release("pvc-midst")
	s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), true))
}

// waitAttachedByKubernetes waits until the attach/detach controller knows that the volume is attached. The external attacher may
// attach it while the controller backs off, for two minutes. If the workload ends meanwhile, the volume stays attached (seen
// with Kubernetes v1.36.3, where Longhorn was slow).
func (s scene) waitAttachedByKubernetes(volume string) {
	s.Helper()
	name := s.Manager.pod.Spec.NodeName
	s.must(eventually.Until(s.ctx, volume+" to be in status.volumesAttached of node "+name, settleTimeout, func() error {
		var node corev1.Node
		if err := s.Client.Get(s.ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return err
		}
		if !slices.ContainsFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return strings.HasSuffix(string(v.Name), "^"+volume) }) {
			return fmt.Errorf("attached are %v", node.Status.VolumesAttached)
		}
		return nil
	}))
}

// delayNetwork has Multus attach pods to NetworkA only after a while.
func (s scene) delayNetwork(delay string) {
	s.Helper()
	value := "null"
	if delay != "" {
		value = fmt.Sprintf("%q", delay)
	}
	out, err := s.Kubectl(s.ctx, "", "-n", "kube-system", "patch", "network-attachment-definitions", "storage-net", "--type=merge",
		"-p", fmt.Sprintf(`{"metadata":{"annotations":{"simulator.fairlead.io/delay":%s}}}`, value))
	if err != nil {
		s.Fatalf("%v: %s", err, out)
	}
}
