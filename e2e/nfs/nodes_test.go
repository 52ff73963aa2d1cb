package nfs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Thirty of sixty nodes are deleted at once. The attach-detach controller deletes their VolumeAttachments, and the pods
// move to thirty new nodes.
func manyNodesRemoved(t *testing.T) {
	s := newScene(t, "removed", nfs.PerNode, 5)
	s.must(s.c.UseNodes(s.ctx, s.service, 60))
	s.must(s.c.CreateClients(s.ctx, s.service, s.service, 60))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(s.ctx)
		s.must(s.c.DeleteClients(ctx, s.service))
		// While a pod is left, the attach-detach controller would attach again what the test detaches.
		_, err := s.c.WaitAssigned(ctx, 0, s.service)
		s.must(err)
	})
	before := s.attached(60)
	s.even(s.loads(before))
	// The first server loses most of its nodes, the others fewer.
	var gone []string
	left := map[string]string{}
	for _, first := range []bool{true, false} {
		for node, address := range before {
			if (address == s.servers[0].String()) != first {
				continue
			}
			if len(gone) < 30 {
				gone = append(gone, node)
			} else {
				left[node] = address
			}
		}
	}
	s.must(s.c.waitReported(s.ctx, gone))
	nodes := s.take(gone)
	t.Cleanup(func() { s.bring(nodes) })
	after := s.attached(30)
	s.same(left, after)
	s.counted(after)

	s.must(s.c.useNodes(s.ctx, s.service, s.nodes(60, 90)))
	after = s.attached(60)
	s.same(left, after)
	s.counted(after)
	s.even(s.loads(after))
}

// waitReported waits until the attach-detach controller has reported attachments in the
// status of nodes. Before it has, it takes the volumes of a node that is deleted for
// mounted, and waits for six minutes (pkg/controller/volume/attachdetach/reconciler).
func (c *Cluster) waitReported(ctx context.Context, nodes []string) error {
	return c.wait(ctx, func(ctx context.Context) (bool, error) {
		for _, name := range nodes {
			var node corev1.Node
			if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil || len(node.Status.VolumesAttached) == 0 {
				return false, err
			}
		}
		return true, nil
	})
}

// take deletes nodes at once, and their pods as the pod garbage collector does (forty
// seconds later). It returns the nodes.
func (s *scene) take(names []string) []*corev1.Node {
	s.Helper()
	gone := map[string]bool{}
	nodes := make([]*corev1.Node, len(names))
	for i, name := range names {
		gone[name], nodes[i] = true, &corev1.Node{}
		s.must(s.c.Client.Get(s.ctx, client.ObjectKey{Name: name}, nodes[i]))
	}
	s.must(each(names, func(name string) error {
		return s.c.Client.Delete(s.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}))
	var pods corev1.PodList
	s.must(s.c.Client.List(s.ctx, &pods, client.InNamespace(Namespace)))
	for i := range pods.Items {
		if gone[pods.Items[i].Spec.NodeName] {
			s.must(client.IgnoreNotFound(s.c.Client.Delete(s.ctx, &pods.Items[i], &client.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))})))
		}
	}
	return nodes
}

// bring the nodes back, for other tests.
func (s *scene) bring(nodes []*corev1.Node) {
	s.Helper()
	ctx := context.WithoutCancel(s.ctx)
	for _, node := range nodes {
		node.ResourceVersion, node.UID = "", ""
		if err := s.c.Client.Create(ctx, node); err != nil {
			s.Error(err)
		}
	}
}

// Two Kubernetes clusters with the same servers don't know each other. Each is even, so together servers differ by at most
// one node for each cluster. Two NFSServices stand in for the clusters.
func twoClustersOnTheSameServers(t *testing.T) {
	const clusters = 2
	sum := map[string]int{}
	for i, name := range []string{"cluster-a", "cluster-b"} {
		s := newScene(t, name, nfs.PerNode, 4)
		now := s.attach(s.nodes(i*30, i*30+10+i*7)...)
		loads := s.loads(now)
		s.even(loads)
		for server, n := range loads {
			sum[server] += n
		}
	}
	lowest, highest := Range(sum)
	if len(sum) != 4 || highest-lowest > clusters {
		t.Errorf("nodes of both clusters by server: %v", sum)
	}
}

// Servers are added, drained and removed while volumes are mounted, without a restart of Fairlead.
func serversChangeLive(t *testing.T) {
	c := shared(t)
	var before []int
	for _, r := range c.Controllers() {
		before = append(before, r.Pid())
	}
	t.Run(string(nfs.PerNode), serversChangePerNode)
	t.Run(string(nfs.PerNodeStable), serversChangePerNodeStable)
	for i, r := range c.Controllers() {
		if i >= len(before) || r.Pid() != before[i] {
			t.Error("a controller was restarted")
		}
	}
}
