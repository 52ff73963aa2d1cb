package fencingreads

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func inUse(handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(fence.UniqueName(rbd, handle))
}

// After any changes, the holdings match the objects.
func TestHoldingsFollowChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHoldingsWithVolumes(nil, ofCeph)
		shown := map[kind]map[string]client.Object{ofNodes: {}, ofRecords: {}, ofAttachments: {}, ofVolumes: {}}
		told := map[string]bool{}
		h.OnAttachment(func(node string) { told[node] = true })
		pick := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
		volumes := func() []string {
			return rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), rapid.ID[string]).Draw(t, "volumes")
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			name := pick("name", "n-1", "n-2", "n-3")
			deletes := rapid.Bool().Draw(t, "delete")
			w := h.watches[rapid.IntRange(0, 3).Draw(t, "kind")]
			attached := attachedNames(h)
			clear(told)
			relisted := rapid.IntRange(0, 9).Draw(t, "relist") == 0
			var now client.Object
			switch w.kind {
			case ofNodes:
				node := using(name, "kubernetes.io/csi/other^a")
				for _, v := range volumes() {
					node.Status.VolumesInUse = append(node.Status.VolumesInUse, inUse(v))
				}
				now = node
			case ofRecords:
				record := recordOf(name, volumes()...)
				record.Spec.NodeName = pick("node", "n-1", "n-2")
				now = record
			case ofAttachments:
				volume := pick("volume", "a", "b")
				now = objects.Attachment(volume, name, rbd)
			case ofVolumes:
				phase := corev1.PersistentVolumePhase(pick("phase", "Bound", "Released"))
				now = objects.Volume(pick("volume", "a", "b", "c"), rbd, pick("handle", "a", "b"), pick("claim", "x", "y"), func(pv *corev1.PersistentVolume) { pv.Status.Phase = phase })
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
			if relisted {
				w.listed = nil
				for _, o := range shown[w.kind] {
					w.listed = append(w.listed, w.shows(o))
				}
				_ = w.Replace(nil, "1")
			}
			for node, names := range attachedNames(h) {
				same := slices.Equal(names, attached[node])
				must.True(t, told[node] == !same || relisted && same, "%s had %v, has %v, told: %v", node, attached[node], names, told[node])
			}
		}
		left := checkVolumes(t, h, shown[ofAttachments], shown[ofVolumes])
		for _, v := range []string{"a", "b", "c"} {
			want := map[string]bool{}
			for _, o := range shown[ofNodes] {
				if slices.Contains(o.(*corev1.Node).Status.VolumesInUse, inUse(v)) {
					want[o.GetName()] = true
				}
			}
			for _, o := range shown[ofRecords] {
				spec := o.(*v1alpha1.NodeFence).Spec
				if slices.ContainsFunc(spec.Volumes, func(h v1alpha1.HeldVolume) bool { return h.PersistentVolume == v }) {
					want[spec.NodeName] = true
				}
			}
			for _, o := range shown[ofAttachments] {
				if spec := o.(*storagev1.VolumeAttachment).Spec; *spec.Source.PersistentVolumeName == v {
					want[spec.NodeName] = true
				}
			}
			got := map[string]bool{}
			for _, tr := range h.traces(fence.Volume{Name: v, Driver: rbd, Handle: v}) {
				got[tr.node] = true
			}
			must.True(t, maps.Equal(got, want), "volume %s: got %v, want %v", v, got, want)
			left += len(want)
		}
		for _, node := range []string{"n-1", "n-2"} {
			var want []string
			for _, o := range shown[ofRecords] {
				if o.(*v1alpha1.NodeFence).Spec.NodeName == node {
					want = append(want, o.GetName())
				}
			}
			var got []string
			for _, s := range h.onNode(ofRecords, node) {
				got = append(got, s.name)
			}
			slices.Sort(got)
			slices.Sort(want)
			must.True(t, slices.Equal(got, want), "records of %s: got %v, want %v", node, got, want)
		}
		onNodes := 0
		for _, all := range h.on {
			onNodes += len(all)
		}
		must.Equal(t, onNodes, len(shown[ofNodes])+len(shown[ofRecords])+len(shown[ofAttachments]))
		must.True(t, h.nodes() == len(shown[ofNodes]) && (left > 0 || len(h.found)+len(h.shapes) == 0), "%d nodes known of %d; %d keys are left", h.nodes(), len(shown[ofNodes]), len(h.found))
	})
}

// attachedNames are the attachments of each node.
func attachedNames(h *Holdings) map[string][]string {
	names := map[string][]string{}
	for _, node := range []string{"n-1", "n-2", "n-3"} {
		names[node] = nil
		for _, a := range h.attachedTo(node) {
			names[node] = append(names[node], a.name)
		}
		slices.Sort(names[node])
	}
	return names
}

// checkVolumes compares what is kept with the objects, and counts the objects.
func checkVolumes(t *rapid.T, h *Holdings, attachments, volumes map[string]client.Object) int {
	t.Helper()
	want := map[string][]string{"n-1": nil, "n-2": nil, "n-3": nil}
	for _, name := range slices.Sorted(maps.Keys(attachments)) {
		node := attachments[name].(*storagev1.VolumeAttachment).Spec.NodeName
		want[node] = append(want[node], name)
	}
	must.Equal(t, attachedNames(h), want, "attachments")
	found := map[string]map[string]bool{}
	for _, o := range volumes {
		pv := o.(*corev1.PersistentVolume)
		v, known := h.volume(pv.Name)
		must.True(t, known && reflect.DeepEqual(v.Held(), FenceVolume(pv).Held()), "got %+v of %s", v, pv.Name)
		keys := []string{fence.UniqueName(rbd, pv.Spec.CSI.VolumeHandle)}
		if pv.Status.Phase == corev1.VolumeBound {
			keys = append(keys, claimKey(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name))
		}
		for _, key := range keys {
			if found[key] == nil {
				found[key] = map[string]bool{}
			}
			found[key][pv.Name] = true
		}
	}
	for _, key := range []string{fence.UniqueName(rbd, "a"), fence.UniqueName(rbd, "b"), claimKey("default", "x"), claimKey("default", "y")} {
		got := map[string]bool{}
		for _, v := range h.volumesOf(key) {
			got[v.Name] = true
		}
		must.True(t, maps.Equal(got, found[key]), "volumes of %s: got %v, want %v", key, got, found[key])
	}
	return len(attachments) + len(volumes)
}

// What is kept of a PersistentVolume is all that fencing reads.
func TestVolumesAreKept(t *testing.T) {
	block := objects.CephVolume("pvc-a", rbd, "one", withSecret("s"), func(pv *corev1.PersistentVolume) {
		mode := corev1.PersistentVolumeBlock
		pv.Spec.VolumeMode, pv.Spec.AccessModes = &mode, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
	})
	c := withHolders(t, block, objects.CephVolume("pvc-b", rbd, "one"), objects.Volume("other", "ebs.csi.aws.com", "h", "claim"))
	h, err := ListedHoldings(t.Context(), c, ofCeph)
	must.Do(t, err)
	want := FenceVolume(block)
	want.Attributes = nil
	got, known := h.volume("pvc-a")
	must.True(t, known && reflect.DeepEqual(got, want), "got %+v, want %+v", got, want)
	plain, _ := h.volume("pvc-b")
	_, other := h.volume("other")
	must.True(t, plain.Secret == nil && !other, "got %+v; of another driver: %v", plain, other)
	must.True(t, h.secretOf(identityKey{rbd, "one"}).Name == "s" && h.secretOf(identityKey{rbd, "two"}) == nil, "wrong secrets")
}

// While another list closes a gap of a watch, what was shown before stays.
func TestHoldingsStayWhileTheyAreListedAgain(t *testing.T) {
	c := withHolders(t, objects.CephVolume("pvc-a", rbd, "one"))
	h, err := ListedHoldings(t.Context(), c, ofCeph)
	must.True(t, err == nil && h.Synced(), "not listed: %v", err)
	for _, w := range h.watches {
		_, err := w.list(t.Context(), c)
		_, known := h.volume("pvc-a")
		must.True(t, err == nil && h.Synced() && known, "synced: %v, known: %v, %v", h.Synced(), known, err)
		must.Do(t, w.Replace(nil, "1"))
	}
	_, known := h.volume("pvc-a")
	must.True(t, known, "lost by the list")
}

// Nodes that can't hold a shared file system from other nodes are not read live.
func TestQuietNodesAreLeftOut(t *testing.T) {
	node, record := using("n", inUse("a")), recordOf("n", "pv-a")
	tainted, rebooted, silent := node.DeepCopy(), node.DeepCopy(), node.DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
	rebooted.Status.NodeInfo.BootID, silent.Status.NodeInfo = "another", corev1.NodeSystemInfo{}
	second, unseen := record.DeepCopy(), record.DeepCopy()
	second.Name, unseen.Spec.Boot = "n-2", v1alpha1.Boot{}
	for name, test := range map[string]struct {
		objects []client.Object
		left    bool
	}{
		"quiet":           {[]client.Object{node, record}, true},
		"tainted":         {[]client.Object{tainted, record}, false},
		"gone":            {[]client.Object{record}, false},
		"without record":  {[]client.Object{node}, false},
		"of another boot": {[]client.Object{rebooted, record}, false},
		"without boot":    {[]client.Object{silent, unseen}, false},
		"of two boots":    {[]client.Object{node, record, second}, false},
		"in an incident":  {[]client.Object{node, lost(record.DeepCopy())}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := withHolders(t, test.objects...)
			r := watching(t, c, c)
			now := testkit.Value[[]fence.Node](t)(r.listNodes(t.Context()))
			must.Equal(t, r.Held.quiet(nil)["n"], test.left, "by the watch")
			must.Equal(t, r.Held.quiet(now)["n"], test.left, "live")
		})
	}
}

// A node that was tainted since is not left out, and neither is one of a record in an incident.
func TestQuietNodesAreJudgedLive(t *testing.T) {
	var all []client.Object
	for i := range each + 2 {
		name := fmt.Sprint("node-", i)
		record := recordOf(name, "pv-a")
		record.Spec.Volumes[0].Shared = i != 2
		all = append(all, using(name, inUse("a")), record)
	}
	watched, shared := withHolders(t, all...), fence.Volume{Name: "pv-a", Driver: rbd, Handle: "a", AccessModes: []string{"ReadWriteMany"}}
	tainted, incident := all[0].(*corev1.Node).DeepCopy(), lost(all[3].(*v1alpha1.NodeFence).DeepCopy())
	tainted.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
	all[0], all[3] = tainted, incident
	holders, err := watching(t, withHolders(t, all...), watched).Holders(t.Context(), shared)
	// The record of node-2 has the volume from before it was shared.
	must.True(t, err == nil && len(holders) == 3 && holders[0].Node.OutOfService && holders[1].Node.Name == "node-1" && holders[2].Node.Name == "node-2", "got %d, %v", len(holders), err)
}
