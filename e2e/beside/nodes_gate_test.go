package beside

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/eventually"
)

// TestNetworkChangesNodeByNode moves to a network and back again, by gate: node, while
// RWX volumes are attached all the time. It takes two and a half minutes.
func TestNetworkChangesNodeByNode(t *testing.T) {
	s := nodeByNode{scene: with(t)}
	s.must(s.StartSecondManager(s.ctx))
	s.nodes = s.Managed()
	s.configure("gate: node", "")
	free := s.State.Nodes[2]
	for _, volume := range []string{"pvc-early", "pvc-late"} {
		s.must(s.CreateVolume(s.ctx, volume, "rwx"))
	}
	s.use("pvc-early")

	s.set(StorageNetwork, NetworkA)
	s.set(StorageNetworkForRWX, "true")
	s.waitClient(free, s.On(NetworkA))
	s.mountableEverywhere("pvc-early")
	for _, node := range s.nodes { // the other one keeps the volume attached
		s.must(s.UnuseOn(s.ctx, "pvc-early", node))
		s.waitClient(node, s.On(NetworkA))
		s.must(s.UseOn(s.ctx, "pvc-early", node))
		s.must(s.WaitAttached(s.ctx, "pvc-early", node))
		s.mountableEverywhere("pvc-early")
	}
	s.waitPhase("Applied")
	s.must(s.servedOn("pvc-early", ""))
	s.use("pvc-late")
	s.must(s.servedOn("pvc-late", s.On(NetworkA)))
	s.follow("pvc-early", s.On(NetworkA))

	s.set(StorageNetworkForRWX, "false")
	s.waitPhase("Waiting")
	s.follow("pvc-early", "")
	// Mounts that are there stay in the CSI plugin pods: none of them may leave yet.
	for _, node := range s.nodes {
		s.must(s.ReachedOn(s.ctx, "pvc-late", node))
	}
	s.waitClient(free, s.On(NetworkA))
	s.follow("pvc-late", "")
	s.waitClient(free, "")
	for _, node := range s.nodes {
		s.must(s.UnuseOn(s.ctx, "pvc-early", node))
		s.must(s.UnuseOn(s.ctx, "pvc-late", node))
		s.waitClient(node, "")
		s.must(s.UseOn(s.ctx, "pvc-early", node))
		s.must(s.WaitAttached(s.ctx, "pvc-early", node))
		s.mountableEverywhere("pvc-early")
	}
	s.waitPhase("Applied")
}

// nodeByNode has workloads of each volume on several nodes.
type nodeByNode struct {
	scene
	nodes []string
}

// use starts a workload on each node, and wants all to mount the volume.
func (s nodeByNode) use(volume string) {
	s.Helper()
	for _, node := range s.nodes {
		s.must(s.UseOn(s.ctx, volume, node))
	}
	for _, node := range s.nodes {
		s.must(s.WaitAttached(s.ctx, volume, node))
	}
	s.must(s.WaitVolume(s.ctx, volume, "attached"))
	s.mountableEverywhere(volume)
}

// follow ends all workloads of one volume and starts them again, once its Service is for
// the network: its server then has to be there.
func (s nodeByNode) follow(volume, network string) {
	s.Helper()
	s.end(volume)
	s.must(eventually.Until(s.ctx, "another Service of "+volume, settleTimeout, func() error {
		var service corev1.Service
		if err := s.Client.Get(s.ctx, key(volume), &service); err != nil {
			return err
		}
		if headless := service.Spec.ClusterIP == corev1.ClusterIPNone; headless != (network != "") {
			return fmt.Errorf("its cluster IP is %s", service.Spec.ClusterIP)
		}
		return nil
	}))
	s.use(volume)
	s.must(s.servedOn(volume, network))
}

// end ends the workloads on all nodes, and waits until the volume is detached.
func (s nodeByNode) end(volume string) {
	s.Helper()
	for _, node := range s.nodes {
		s.must(s.UnuseOn(s.ctx, volume, node))
	}
	s.must(s.WaitVolume(s.ctx, volume, "detached"))
}

func (s nodeByNode) mountableEverywhere(volume string) {
	s.Helper()
	for _, node := range s.nodes {
		s.expectMountableOn(volume, node)
	}
}

// waitClient waits until the CSI plugin pod of a node is on a network.
func (s scene) waitClient(node, network string) {
	s.Helper()
	s.must(eventually.Until(s.ctx, fmt.Sprintf("the client on %s to be on %q", node, network), settleTimeout, func() error {
		pod, err := s.PluginPod(s.ctx, node)
		if err == nil && Requested(pod.Annotations) != network {
			err = fmt.Errorf("pod %s is on %q", pod.Name, Requested(pod.Annotations))
		}
		return err
	}))
}
