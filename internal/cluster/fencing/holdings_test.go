package fencing

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func inUse(handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(fence.UniqueName(rbd, handle))
}

// After any changes, the holdings match the objects.
func TestHoldingsFollowChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHoldings()
		shown := map[kind]map[string]client.Object{ofNodes: {}, ofRecords: {}, ofAttachments: {}}
		watches := h.watches(nil, ofCeph)
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		volumes := func() []string {
			return rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string]).Draw(t, "volumes")
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := pick("name", "n-1", "n-2", "n-3")
			deletes := rapid.Bool().Draw(t, "delete")
			w := watches[rapid.IntRange(0, 2).Draw(t, "kind")]
			var now client.Object
			switch w.kind {
			case ofNodes:
				node := using(name, "kubernetes.io/csi/other^a")
				for _, v := range volumes() {
					node.Status.VolumesInUse = append(node.Status.VolumesInUse, inUse(v))
				}
				now = node
			case ofRecords:
				record := remembering(name, "Healthy", volumes()...)
				record.Status.NodeName = pick("node", "n-1", "n-2")
				now = record
			case ofAttachments:
				volume := pick("volume", "a", "b")
				now = objects.Attachment(volume, name, rbd)
			}
			before := shown[w.kind][now.GetName()]
			switch {
			case deletes && before != nil:
				delete(shown[w.kind], now.GetName())
				_ = w.Delete(before)
			case !deletes:
				shown[w.kind][now.GetName()] = now
				_ = w.Update(now)
			}
			if rapid.IntRange(0, 9).Draw(t, "relist") == 0 {
				w.listed = nil
				for _, o := range shown[w.kind] {
					w.listed = append(w.listed, w.show(o))
				}
				_ = w.Replace(nil, "1")
			}
		}
		left := 0
		for _, v := range []string{"a", "b", "c"} {
			want := map[string]bool{}
			for _, o := range shown[ofNodes] {
				if slices.Contains(o.(*corev1.Node).Status.VolumesInUse, inUse(v)) {
					want[o.GetName()] = true
				}
			}
			for _, o := range shown[ofRecords] {
				status := o.(*v1alpha1.NodeFence).Status
				if slices.ContainsFunc(status.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v }) {
					want[status.NodeName] = true
				}
			}
			for _, o := range shown[ofAttachments] {
				if spec := o.(*storagev1.VolumeAttachment).Spec; *spec.Source.PersistentVolumeName == v {
					want[spec.NodeName] = true
				}
			}
			got := map[string]bool{}
			for _, name := range h.holders(fence.Volume{Name: v, Driver: rbd, Handle: v}) {
				got[name] = true
			}
			must.True(t, maps.Equal(got, want), "volume %s: got %v, want %v", v, got, want)
			left += len(want)
		}
		for _, node := range []string{"n-1", "n-2"} {
			var want []string
			for _, o := range shown[ofRecords] {
				if o.(*v1alpha1.NodeFence).Status.NodeName == node {
					want = append(want, o.GetName())
				}
			}
			got := h.recordsOf(node)
			slices.Sort(got)
			slices.Sort(want)
			must.True(t, slices.Equal(got, want), "records of %s: got %v, want %v", node, got, want)
		}
		if known := h.nodes(); known != len(shown[ofNodes]) || left == 0 && len(h.volumes) > 0 {
			t.Fatalf("%d nodes known of %d; %d volumes are kept", known, len(shown[ofNodes]), len(h.volumes))
		}
	})
}

// Nodes that can't hold a shared file system from other nodes are not read live.
func TestQuietNodesAreLeftOut(t *testing.T) {
	node, record := using("n", inUse("a")), remembering("n", "Healthy", "pv-a")
	node.Status.NodeInfo.SystemUUID, record.Status.Node.SystemUUID = "machine", "machine"
	tainted, replaced, unnamed := node.DeepCopy(), node.DeepCopy(), node.DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
	replaced.Status.NodeInfo.SystemUUID, unnamed.Status.NodeInfo.SystemUUID = "another", ""
	second, unwritten, fenced, hidden := record.DeepCopy(), record.DeepCopy(), record.DeepCopy(), record.DeepCopy()
	fenced.Status.Phase = v1alpha1.NodeFencing
	hidden.Labels = nil
	second.Name, second.Status.NodeName, unwritten.Status.Node.SystemUUID = "n-2", "n", ""
	for name, test := range map[string]struct {
		objects []client.Object
		left    bool
	}{
		"quiet":              {[]client.Object{node, record}, true},
		"tainted":            {[]client.Object{tainted, record}, false},
		"gone":               {[]client.Object{record}, false},
		"without record":     {[]client.Object{node}, false},
		"of another machine": {[]client.Object{replaced, record}, false},
		"without machine":    {[]client.Object{unnamed, unwritten}, false},
		"of two machines":    {[]client.Object{node, record, second}, false},
		"in an incident":     {[]client.Object{node, fenced}, false},
		"without label":      {[]client.Object{node, hidden}, false},
	} {
		c := withHolders(t, test.objects...)
		r := watching(t, c, c)
		names, incident := map[string]map[string]bool{"n": nil}, map[string]map[string]bool{"n": {"n": true}}
		for of, kept := range map[*map[string]map[string]bool]bool{&names: !test.left, &incident: true} {
			r.leaveOutQuiet(*of)
			must.True(t, (len(*of) == 1) == kept, "%s: got %v", name, *of)
		}
	}
}
