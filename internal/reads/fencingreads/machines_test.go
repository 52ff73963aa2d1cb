package fencingreads

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// nodePages are pages of nodes from the API server. The nodes' addresses show their source.
type nodePages struct {
	client.Reader
	address  string
	count    int
	requests []int64
}

func (p *nodePages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	p.requests = append(p.requests, o.Limit)
	nodes, whole := list.(*corev1.NodeList)
	if !whole {
		list.SetResourceVersion("1000")
		return nil
	}
	from, _ := strconv.Atoi(o.Continue)
	to := p.count
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	nodes.Items = nil
	for i := from; i < to; i++ {
		nodes.Items = append(nodes.Items, *nodeAt(fmt.Sprint("node-", i), p.address))
	}
	nodes.ResourceVersion, nodes.Continue = "1000", ""
	if to < p.count {
		nodes.Continue = strconv.Itoa(to)
	}
	return nil
}

// Other nodes' addresses never come from a stale cache.
func TestNodesAreAsNewAsALiveList(t *testing.T) {
	const live, cached = "192.168.1.1", "192.168.1.2"
	for name, test := range map[string]struct {
		nodes int
		// versions that the cache reaches, from look to look.
		versions []string
		want     string
		requests int
	}{
		"one page":             {lists.LargePage, []string{"1000"}, live, 1},
		"caught up":            {lists.LargePage + 1, []string{"1000"}, cached, 1},
		"ahead":                {lists.LargePage + 1, []string{"10000"}, cached, 1},
		"catches up":           {lists.LargePage + 1, []string{"998", "999", "1001"}, cached, 1},
		"does not":             {lists.LargePage + 1, []string{"999"}, live, 1 + 2},
		"version is not known": {lists.LargePage + 1, []string{""}, live, 1 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &nodePages{address: live, count: test.nodes}
				objects := &nodePages{address: cached, count: test.nodes}
				looks := 0
				version := func(context.Context) string {
					looks++
					return test.versions[min(looks, len(test.versions))-1]
				}
				nodes, err := NewFenceReader(config.Fencing{}, objects, server, version, nil).nodesNow(t.Context())
				must.True(t, err == nil && len(nodes) == test.nodes, "got %d nodes, %v", len(nodes), err)
				for i := range nodes {
					n := FenceNode(&nodes[i])
					must.True(t, n.Addresses[len(n.Addresses)-1].String() == test.want, "%s has %s, want %s", n.Name, n.Addresses, test.want)
				}
				must.True(t, len(server.requests) == test.requests, "asked the API server %d times: %v", len(server.requests), server.requests)
			})
		})
	}
}

// Only records of healthy machines may come from a stale cache.
func TestRecordsInAnIncidentAreReadLive(t *testing.T) {
	unlabelled := lost(recordOf("unlabelled"))
	unlabelled.Labels = nil // by another user
	cached := withHolders(t, recordOf("lost"), lost(recordOf("back")), lost(recordOf("gone")), recordOf("healthy", "late"), unlabelled.DeepCopy())
	live := withHolders(t, lost(recordOf("lost")), recordOf("back"), lost(recordOf("new")), recordOf("healthy"), unlabelled)
	records, err := NewFenceReader(config.Fencing{}, cached, live, nil, nil).recordsNow(t.Context())
	must.Do(t, err)
	got := map[string]bool{}
	for _, o := range records {
		got[o.Name] = o.Spec.LostSince != nil
	}
	must.Equal(t, got, map[string]bool{"lost": true, "back": false, "new": true, "healthy": false, "unlabelled": true})
}

// The node has mounted a volume that no watch has shown yet.
func TestVolumeInUseIsFoundThroughItsAttachment(t *testing.T) {
	pv := objects.CephVolume("pvc-new", rbd, "rook-ceph")
	va := attachedAt(pv.Name, rbd, "node-1", fenceNoon)
	va.Name = attachmentName(rbd, pv.Spec.CSI.VolumeHandle, "node-1")
	node := nodeAt("node-1", "192.168.1.1")
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(rbd, pv.Spec.CSI.VolumeHandle))}
	cached := fenceWorld{objects: []client.Object{objects.CephVolume("pvc-other", rbd, "rook-ceph")}}.reader(t)
	live := fenceWorld{objects: []client.Object{node, pv, va}}.reader(t)
	cached.live = live.live
	v := onlyView(t, now(t, cached), "node-1", fenceNoon)
	h := v.Facts.Holding
	must.True(t, len(h) == 1 && h[0].PersistentVolume == pv.Name, "got %+v", h)
}

func TestAttachmentsAreNamedAsKubernetesDoes(t *testing.T) {
	const want = "csi-fdef298eb16db6fa42906ef1ff09a93a7f3028f8290cc9d71628ff91c237bfa7" // printf handledrivernode | sha256sum
	must.Equal(t, attachmentName("driver", "handle", "node"), want)
}

// The Node that listed the volume is deleted, and the cache has no attachment yet.
func TestAttachmentsOfDeletedNodeAreReadLiveUntilRecorded(t *testing.T) {
	pv := objects.CephVolume("pvc-new", rbd, "rook-ceph")
	present, before := recordOf("node-1"), lost(recordOf("node-1"))
	present.Spec.NodeUID, before.Name, before.Spec.Boot.SystemUUID = "uid-1", "node-1-before", "another"
	for name, test := range map[string]struct {
		records []client.Object
		want    int
	}{
		"not recorded as gone":       {[]client.Object{present}, 1},
		"recorded as gone":           {[]client.Object{lost(recordOf("node-1"))}, 0},
		"only an earlier machine is": {[]client.Object{present, before}, 1},
	} {
		all := append(test.records, pv)
		cached := fenceWorld{objects: all}.reader(t)
		cached.live = fenceWorld{objects: append(all, attachedAt(pv.Name, rbd, "node-1", fenceNoon))}.reader(t).live
		views, err := now(t, cached).Views(t.Context(), "node-1", fenceNoon, nil)
		must.Do(t, err)
		held := views[0].Facts.Holding
		must.Check(t, len(held) == test.want, "%s: holds %+v", name, held)
	}
}
