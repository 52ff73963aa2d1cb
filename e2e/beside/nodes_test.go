package beside

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// TestServerOnAnotherNodeIsReached has workloads on two nodes, and the server on one and then
// on the other, on the cluster network and on a storage network. It takes two minutes.
func TestServerOnAnotherNodeIsReached(t *testing.T) {
	eachWay(t, func(s scene) {
		s.must(s.StartSecondManager(s.ctx))
		nodes := s.Managed()
		s.Cleanup(func() {
			ctx := context.WithoutCancel(s.ctx)
			s.serveOn(ctx, nodes[0])
			if out, err := s.Kubectl(ctx, "", "-n", Namespace, "delete", "pods", "-l", "longhorn.io/component=instance-manager,longhorn.io/node="+nodes[1]); err != nil {
				s.Errorf("%v: %s", err, out)
			}
		})
		s.must(s.CreateVolume(s.ctx, "pvc-far", "rwx"))
		n := nodeByNode{scene: s, nodes: nodes}
		for i, network := range []string{"", NetworkA} {
			first, then := nodes[i], nodes[1-i]
			s.serveOn(s.ctx, nodes...)
			s.must(s.waitInstanceManagers(len(nodes)))
			s.serveOn(s.ctx, first)
			n.use("pvc-far")
			s.must(s.served("pvc-far", first, s.On(network)))
			s.serveOn(s.ctx, then)
			s.failOver("pvc-far")
			n.mountableEverywhere("pvc-far")
			s.must(s.served("pvc-far", then, s.On(network)))
			n.end("pvc-far")
			if network == "" {
				s.set(StorageNetwork, NetworkA)
				s.set(StorageNetworkForRWX, "true")
				s.must(s.waitNetworks(s.On(NetworkA), OnStorage(NetworkA), one.installed))
			}
		}
	})
}

// waitInstanceManagers waits until that many instance managers are Ready.
func (s scene) waitInstanceManagers(n int) error {
	return eventually.Until(s.ctx, fmt.Sprintf("%d instance managers", n), settleTimeout, func() error {
		pods, err := s.Pods(s.ctx, "longhorn.io/component", "instance-manager")
		if err == nil && (len(pods) != n || slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !sandbox.IsReady(&pod) })) {
			err = fmt.Errorf("there are %d, or one is not Ready", len(pods))
		}
		return err
	})
}

// serveOn has new servers start on these nodes only, and instance managers, too: Longhorn
// starts none on a cordoned node.
func (s scene) serveOn(ctx context.Context, nodes ...string) {
	s.Helper()
	for _, other := range s.State.Nodes {
		verb := "cordon"
		if slices.Contains(nodes, other) {
			verb = "uncordon"
		}
		if out, err := s.Kubectl(ctx, "", verb, other); err != nil {
			s.Errorf("%s: %v: %s", verb, err, out)
		}
	}
	const template = `jsonpath={range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Schedulable")].status} {end}`
	want := map[bool]string{true: "True", false: "False"}
	err := eventually.Until(ctx, "Longhorn to know of it", settleTimeout, func() error {
		out, err := s.Kubectl(ctx, "", "-n", Namespace, "get", "nodes.longhorn.io", "-o", template)
		for _, other := range s.Managed() {
			if state := other + "=" + want[slices.Contains(nodes, other)]; err == nil && !strings.Contains(out, state) {
				err = fmt.Errorf("%s is missing in: %s", state, out)
			}
		}
		return err
	})
	if err != nil {
		s.Error(err)
	}
}

func (s scene) served(volume, node, network string) error {
	server, err := s.Server(s.ctx, volume)
	if err == nil && server.Spec.NodeName != node {
		err = fmt.Errorf("the server of %s is on %s, want %s", volume, server.Spec.NodeName, node)
	}
	if err != nil {
		return err
	}
	return s.servedOn(volume, network)
}
