package fencing

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// used is a volume of the driver on node-1.
func used(driver, clusterID string) []client.Object {
	return []client.Object{fencedPV("pvc-"+clusterID, driver, clusterID), attachedAt("pvc-"+clusterID, driver, "node-1", fenceNoon)}
}

func TestSourcesOfTheLedger(t *testing.T) {
	node := fencedNodeObject("node-1", "192.168.1.1")
	class := fencedStorageClass("block", rbdDriver, "one", "provisioner")
	host := fencedClient("csi-rbdplugin", "node-1")
	public, ofNode := config.FencingProfile{Network: "rook-ceph/public"}, config.FencingProfile{Addresses: config.AddressesNode}
	registered := func(nodeID string) client.Object {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: rbdDriver, NodeID: nodeID}}}}
	}
	const silent = "rbd/one:  class fast secret rook-ceph/provisioner problem csi-addons reports no address of the node for NetworkFenceClass fast: the csi-addons sidecar must run in the plugin pod of " + rbdDriver + " on the node, and its CSIAddonsNode be Connected: kubectl -n rook-ceph get csiaddonsnodes -o yaml"
	for name, test := range map[string]struct {
		profile config.FencingProfile
		objects []client.Object
		want    []string
	}{
		"what csi-addons reports": {
			objects: []client.Object{node, class, host, fenceClass("fast", rbdDriver, "one"), addonsNode("a", rbdDriver, "node-1", "fast", "192.168.20.1/32", "fd00:20::1/128")},
			want:    []string{"rbd/one: CSIAddonsNode 192.168.20.1/32, CSIAddonsNode fd00:20::1/128 id fsid class fast secret rook-ceph/provisioner"},
		},
		"node-1 is not node-11": {
			objects: []client.Object{node, class, host, registered("node-1"), fenceClass("fast", rbdDriver, "one"), addonsNode("a", rbdDriver, "node-11", "fast", "192.168.20.11/32")},
			want:    []string{silent},
		},
		"the driver has its own name of the node": {
			objects: []client.Object{node, class, host, registered("i-0815"), fenceClass("fast", rbdDriver, "one"),
				addonsNode("a", rbdDriver, "node-1", "fast", "192.168.20.9/32"), addonsNode("b", rbdDriver, "i-0815", "fast", "192.168.20.1/32")},
			want: []string{"rbd/one: CSIAddonsNode 192.168.20.1/32 id fsid class fast secret rook-ceph/provisioner"},
		},
		"a list that csi-addons has not asked for again is of before": {
			objects: []client.Object{node, class, host, registered("node-1"), fenceClass("fast", rbdDriver, "one"), func() client.Object {
				n := addonsNode("a", rbdDriver, "node-1", "fast", "192.168.20.1/32")
				n.Status.State = "Retrying"
				return n
			}()},
			want: []string{silent},
		},
		"another driver of the same node": {
			objects: []client.Object{node, class, host, registered("node-1"), fenceClass("fast", rbdDriver, "one"), addonsNode("a", cephfsDriver, "node-1", "fast", "192.168.20.1/32")},
			want:    []string{silent},
		},
		"a class that is gone says nothing": {
			objects: []client.Object{node, class, host, registered("node-1"), addonsNode("a", rbdDriver, "node-1", "fast", "192.168.20.1/32")},
			want:    []string{"rbd/one:  secret rook-ceph/provisioner problem no NetworkFenceClass is for " + rbdDriver + ` and clusterID "one": create one, so that csi-addons reports by which addresses the storage knows the node; if those are the Node object's own, set fencing.profiles[rook-ceph].addresses to node`},
		},
		"a driver that is not on the node": {
			objects: []client.Object{node, class, fenceClass("fast", rbdDriver, "one")},
			want:    nil,
		},
		"a wide mask stays, to be refused": {
			objects: []client.Object{node, class, host, fenceClass("fast", rbdDriver, "one"), addonsNode("a", rbdDriver, "node-1", "fast", "fd00:20::1/32")},
			want:    []string{"rbd/one: CSIAddonsNode fd00:20::1/32 id fsid class fast secret rook-ceph/provisioner"},
		},
		"several classes of one identity: the first by name": {
			objects: []client.Object{node, class, host, fenceClass("b", rbdDriver, "one"), fenceClass("a", rbdDriver, "one"), addonsNode("a", rbdDriver, "node-1", "b", "192.168.20.1/32")},
			want:    []string{"rbd/one: CSIAddonsNode 192.168.20.1/32 id fsid class a secret rook-ceph/provisioner"},
		},
		"the address on the storage network, whatever its interface": {
			profile: public,
			objects: []client.Object{node, class, fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net7=192.168.20.1", "rook-ceph/other@net1=192.168.30.1"))},
			want:    []string{"rbd/one: Multus 192.168.20.1/32 secret rook-ceph/provisioner"},
		},
		"the storage network, whatever csi-addons reports": {
			profile: public,
			objects: []client.Object{node, class, fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net7=192.168.20.1")),
				fenceClass("fast", rbdDriver, "one"), addonsNode("a", rbdDriver, "node-1", "fast", "10.20.0.1/32")},
			want: []string{"rbd/one: Multus 192.168.20.1/32 class fast secret rook-ceph/provisioner"},
		},
		"the client pods of both families, and of the new operator's name": {
			profile: public,
			objects: []client.Object{node, class, fencedClient(rbdDriver+"-nodeplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net1=192.168.20.1", "rook-ceph/public@net2=fd00:20::1"))},
			want:    []string{"rbd/one: Multus 192.168.20.1/32, Multus fd00:20::1/128 secret rook-ceph/provisioner"},
		},
		"one that leaves may have mounts yet": {
			profile: public,
			objects: []client.Object{node, class,
				fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net1=192.168.20.1")),
				fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.8", "rook-ceph/public@net1=192.168.20.2"), func(p *corev1.Pod) { p.Name = "new" }),
				fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.9", "rook-ceph/public@net1=192.168.20.3"), func(p *corev1.Pod) { p.Name, p.Status.Phase = "old", corev1.PodFailed })},
			want: []string{"rbd/one: Multus 192.168.20.1/32, Multus 192.168.20.2/32 secret rook-ceph/provisioner"},
		},
		"every internal address of the node, in whole, where configured": {
			profile: ofNode,
			objects: []client.Object{fencedNodeObject("node-1", "192.168.1.1", "2001:db8::1:0"), class, host},
			want:    []string{"rbd/one: Node 192.168.1.1/32, Node 2001:db8::1:0/128 secret rook-ceph/provisioner"},
		},
		"another driver's plugin": {
			profile: ofNode,
			objects: []client.Object{node, class, fencedClient("csi-cephfsplugin", "node-1")},
			want:    nil,
		},
		"another storage system's driver": {
			profile: ofNode,
			objects: append(used("driver.longhorn.io", ""), node, host, fencedStorageClass("lh", "driver.longhorn.io", "", "x")),
			want:    nil,
		},
		"several clusters, and both drivers": {
			profile: ofNode,
			objects: []client.Object{node, class, fencedStorageClass("block-2", rbdDriver, "two", "second"), fencedStorageClass("files", cephfsDriver, "one", "files"), host, fencedClient("csi-cephfsplugin", "node-1")},
			want: []string{
				"cephfs/one: Node 192.168.1.1/32 secret rook-ceph/files",
				"rbd/one: Node 192.168.1.1/32 secret rook-ceph/provisioner", "rbd/two: Node 192.168.1.1/32 secret rook-ceph/second",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{profile: test.profile, objects: test.objects}.facts(t, "node-1")
			if got := written(view.Facts.Ledger); !slices.Equal(got, test.want) {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// An identity that is used and has no address says what to configure.
func TestAnIdentityWithoutAddressSaysWhatToConfigure(t *testing.T) {
	node := fencedNodeObject("node-1", "192.168.1.1")
	public, ofNode := config.FencingProfile{Network: "rook-ceph/public"}, config.FencingProfile{Addresses: config.AddressesNode}
	for name, test := range map[string]struct {
		profile config.FencingProfile
		objects []client.Object
		want    string
	}{
		"no class":      {objects: []client.Object{node}, want: "no NetworkFenceClass is for " + rbdDriver},
		"no client pod": {profile: ofNode, objects: []client.Object{node}, want: "no client pod of rook-ceph.rbd.csi.ceph.com is on the node"},
		"the cluster network": {
			profile: ofNode, objects: []client.Object{node, fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7"))},
			want: "remove addresses: node from fencing.profiles[rook-ceph]",
		},
		"Multus is silent": {
			profile: public, objects: []client.Object{node, fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/other@net1=192.168.30.1"))},
			want: "Multus reports no address of client pod csi-rbdplugin-node-1 on network rook-ceph/public",
		},
		"the host network, though a network is configured": {
			profile: public, objects: []client.Object{node, fencedClient("csi-rbdplugin", "node-1")},
			want: "remove network",
		},
		"a node without an address": {profile: ofNode, objects: []client.Object{fencedNodeObject("node-1"), fencedClient("csi-rbdplugin", "node-1")}, want: "no internal address"},
		"one of two": {
			profile: public, objects: []client.Object{node, fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net1=192.168.20.1")),
				fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.8"), func(p *corev1.Pod) { p.Name = "new" })},
			want: "Multus reports no address of client pod new",
		},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{profile: test.profile, objects: append(test.objects, used(rbdDriver, "one")...)}.facts(t, "node-1")
			if len(view.Facts.Ledger) != 1 || len(view.Facts.Ledger[0].Addresses) != 0 || !strings.Contains(view.Facts.Ledger[0].Problem, test.want) {
				t.Fatalf("got %q, want %q", written(view.Facts.Ledger), test.want)
			}
		})
	}
}

func TestSecretsToFenceWith(t *testing.T) {
	node, host := fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1")
	on := attachedAt("pvc-a", rbdDriver, "node-1", fenceNoon)
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"of the volume, before that of the class": {[]client.Object{fencedPV("pvc-a", rbdDriver, "one", withSecret("volume")), fencedStorageClass("block", rbdDriver, "one", "class")}, "volume"},
		"of the class of the cluster":             {[]client.Object{fencedPV("pvc-a", rbdDriver, "one"), fencedStorageClass("a", rbdDriver, "two", "other"), fencedStorageClass("b", rbdDriver, "one", "class")}, "class"},
		"no template":                             {[]client.Object{fencedPV("pvc-a", rbdDriver, "one"), fencedStorageClass("a", rbdDriver, "one", "${pvc.name}"), fencedStorageClass("b", rbdDriver, "one", "class")}, "class"},
		"a static volume takes another volume's":  {[]client.Object{fencedPV("pvc-a", rbdDriver, "one"), fencedPV("pvc-b", rbdDriver, "two", withSecret("wrong")), fencedPV("pvc-d", rbdDriver, "one", withSecret("last")), fencedPV("pvc-c", rbdDriver, "one", withSecret("first"))}, "first"},
		"none":                                    {[]client.Object{fencedPV("pvc-a", rbdDriver, "one")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{objects: append(test.objects, node, host, on)}.facts(t, "node-1")
			got := ""
			for _, i := range view.Facts.Ledger {
				if i.ClusterID == "one" && i.Secret != nil {
					got = i.Secret.Name
				}
			}
			if got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

// What can't be joined to a volume of the storage must not keep what can.
func TestHoldingJoinsWhatThereIs(t *testing.T) {
	static := func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = nil
		pv.Spec.CSI.VolumeAttributes["staticVolume"] = "true"
	}
	notCSI := func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI = nil
		pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "s"}
	}
	mode := func(m corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{m} }
	}
	lost := fencedNodeObject("node-1", "192.168.1.1")
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	lost.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + rbdDriver + "^handle-static", "kubernetes.io/nfs/x", "kubernetes.io/csi/" + rbdDriver + "^gone"}
	lost.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/" + rbdDriver + "^handle-released"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	for _, claim := range []string{"claim-files", "claim-nfs", "claim-unbound"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
	inline := attachedAt("x", rbdDriver, "node-1", fenceNoon)
	inline.Name, inline.Spec.Source.PersistentVolumeName = "inline", nil
	view := fenceWorld{objects: []client.Object{
		lost, fencedNodeObject("node-11", "192.168.1.11"),
		fencedPV("pvc-a", rbdDriver, "one"), attachedAt("pvc-a", rbdDriver, "node-1", fenceNoon),
		fencedPV("pvc-other", rbdDriver, "one"), attachedAt("pvc-other", rbdDriver, "node-11", fenceNoon),
		fencedPV("static", rbdDriver, "one", static), fencedPV("released", rbdDriver, "one", func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }),
		fencedPV("shared", cephfsDriver, "one", mode(corev1.ReadWriteMany)), attachedAt("shared", cephfsDriver, "node-1", fenceNoon),
		fencedPV("read", cephfsDriver, "one", mode(corev1.ReadOnlyMany)), attachedAt("read", cephfsDriver, "node-1", fenceNoon),
		fencedPV("files", cephfsDriver, "two"), pod,
		fencedPV("files-before", cephfsDriver, "two", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Status.Phase = "claim-files", corev1.VolumeReleased
		}),
		fencedPV("nfs", "", "", notCSI), attachedAt("nfs", rbdDriver, "node-1", fenceNoon),
		attachedAt("deleted", rbdDriver, "node-1", fenceNoon), inline,
		fencedPV("lh", "driver.longhorn.io", ""), attachedAt("lh", "driver.longhorn.io", "node-1", fenceNoon),
	}}.facts(t, "node-1")
	if got, want := names(view.Facts.Holding), []string{"files", "pvc-a", "released", "shared", "static"}; !slices.Equal(got, want) {
		t.Errorf("holds %v, want %v", got, want)
	}
	want := []string{
		"VolumeAttachment va-deleted-node-1 of deleted", "VolumeAttachment va-nfs-node-1 of nfs", "VolumeAttachment va-pvc-a-node-1 of pvc-a",
		"VolumeAttachment va-read-node-1 of read", "VolumeAttachment va-shared-node-1 of shared", "pod default/app",
	}
	if !slices.Equal(view.Facts.Left, want) {
		t.Errorf("left: %q\nwant  %q", view.Facts.Left, want)
	}
	for _, h := range view.Facts.Holding {
		if h.Shared != (h.PersistentVolume == "shared") {
			t.Errorf("%+v", h)
		}
	}
}

// The pods of a healthy node are looked at only where a driver leaves no attachments.
func TestPodsOfHealthyNodesAreReadOnlyWhereNothingElseTells(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app"}, Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-files"}}}}
	objects := []client.Object{fencedNodeObject("node-1", "192.168.1.1"), fencedPV("files", cephfsDriver, "one"), pod}
	if held := (fenceWorld{objects: objects}).facts(t, "node-1").Facts.Holding; len(held) != 0 {
		t.Fatalf("got %v", held)
	}
	no := false
	without := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfsDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: &no}}
	if held := (fenceWorld{objects: append(objects, without)}).facts(t, "node-1").Facts.Holding; !slices.Equal(names(held), []string{"files"}) {
		t.Fatalf("got %v", held)
	}
}

// Kubernetes may attach to a node that is not Ready, and a kubelet may flap after
// the boot: only what was there when the fence was asked for is of before.
func TestAttachmentsFromBeforeTheNodeWasFenced(t *testing.T) {
	back := fenceNoon.Add(-time.Hour) // the node's condition
	asked := back.Add(-time.Hour)
	record := recordOf("node-1")
	record.Status.Phase = v1alpha1.NodeReturned
	record.Status.Fences = []v1alpha1.Fence{{Name: "second", Since: metav1.NewTime(back)}, {Name: "first", Since: metav1.NewTime(asked)}}
	objects := []client.Object{
		fencedNodeObject("node-1", "192.168.1.1"), fencedPV("old", rbdDriver, "one"), fencedPV("new", rbdDriver, "one"),
		attachedAt("old", rbdDriver, "node-1", asked), attachedAt("new", rbdDriver, "node-1", asked.Add(time.Second)),
	}
	for name, created := range map[string]time.Time{"old": asked, "new": asked.Add(time.Second)} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "app-" + name, CreationTimestamp: metav1.NewTime(created)}, Spec: corev1.PodSpec{NodeName: "node-1"}}
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + name}}}}
		objects = append(objects, pod)
	}
	got := (fenceWorld{objects: append(objects, record)}).facts(t, "node-1").Facts
	if !slices.Equal(got.OldAttachments, []string{"VolumeAttachment va-old-node-1 of old"}) || !slices.Equal(got.OldPods, []string{"default/app-old"}) {
		t.Errorf("got %q and %q", got.OldAttachments, got.OldPods)
	}
	// Fairlead's clock was behind the API server's when it asked.
	made := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "first", CreationTimestamp: metav1.NewTime(asked.Add(time.Minute))}}
	if got := (fenceWorld{objects: append(objects, record, made)}).facts(t, "node-1").Facts.OldAttachments; len(got) != 2 {
		t.Errorf("old by the API server's clock are %q", got)
	}
	if got := (fenceWorld{objects: objects}).facts(t, "node-1").Facts.OldAttachments; len(got) != 0 {
		t.Errorf("old although nothing was fenced: %q", got)
	}
}

func TestWhatAFenceCouldHurt(t *testing.T) {
	lost := fencedNodeObject("node-1", "192.168.1.1")
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	osd := fencedClient("rook-ceph-osd", "node-2", onNetwork("10.244.2.9", "rook-ceph/public@net1=192.168.20.90"), func(p *corev1.Pod) {
		p.Status.HostIPs = []corev1.HostIP{{IP: "192.168.1.2"}}
	})
	stray := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "stray"}, Spec: csiaddons.NetworkFenceSpec{FenceState: csiaddons.Unfenced, CIDRs: []string{"192.168.1.1/32"}}}
	override := fence.Override{Gate: fence.GateUnfence, By: "eve", Reason: "scrapped", Scope: "x-1"}
	record := recordOf("node-2", "x")
	record.Status.Incident = "x-1"
	record.Annotations = map[string]string{fence.OverrideAnnotation: "unfence: scrapped", fence.OverriddenAnnotation: override.Text()}
	incident := recordOf("node-1")
	incident.Status.Phase = v1alpha1.NodeFencing
	view := fenceWorld{objects: []client.Object{lost, incident, fencedNodeObject("node-2", "192.168.1.2"), record, osd, stray, fencedClient("csi-rbdplugin", "node-2", onNetwork("10.244.2.7", "rook-ceph/public@net1=192.168.20.2"))}}.facts(t, "node-1")
	f := view.Facts
	if len(f.Others) != 1 || len(f.Servers) != 1 || len(f.Fences) != 1 || !f.Fences[0].Unfenced {
		t.Fatalf("got %+v, %+v, %+v", f.Others, f.Servers, f.Fences)
	}
	if o := f.Others[0]; o.Override.By != "eve" || len(o.Status.Volumes) != 1 {
		t.Errorf("got %+v", o)
	}
	var addresses []string
	for _, a := range f.Others[0].ClientAddresses {
		addresses = append(addresses, a.String())
	}
	if want := []string{"10.244.2.7", "10.244.2.7", "192.168.20.2", "10.244.2.9", "10.244.2.9", "192.168.20.90"}; !slices.Equal(addresses, want) {
		t.Errorf("clients have %v, want %v", addresses, want)
	}
	if s := f.Servers[0]; s.Node != "node-2" || len(s.Addresses) != 4 || s.Addresses[3].String() != "192.168.1.2" {
		t.Errorf("got %+v", s)
	}
}

// Without csi-addons the ledger is kept from another source, where one is configured.
func TestFactsWithoutCSIAddons(t *testing.T) {
	w := fenceWorld{profile: config.FencingProfile{Addresses: config.AddressesNode}, funcs: notInstalledFuncs(), objects: append(used(rbdDriver, "one"), fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1"))}
	view := w.facts(t, "node-1")
	if !view.Facts.NoCSIAddons || len(view.Facts.Ledger) != 1 || len(view.Facts.Ledger[0].Addresses) != 1 {
		t.Fatalf("got %+v", view.Facts.Ledger)
	}
}

// What fencing reads survives the cache's copies, and nothing more is kept.
func TestCopiesForFencing(t *testing.T) {
	node := fencedNodeObject("node-1", "192.168.1.1")
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(fenceNoon)
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + rbdDriver + "^a"}
	node.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/out-of-service", Value: "fairlead"}}
	want := FenceNode(node)
	slim, err := caches.FencedNode(node.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	got := slim.(*corev1.Node)
	if !FenceNode(got).ReadyChanged.Equal(want.ReadyChanged) || FenceNode(got).Machine != want.Machine || !FenceNode(got).OwnTaint || !slices.Equal(FenceNode(got).Addresses, want.Addresses) ||
		len(volumesInUse(got)) != 1 || len(got.Status.Images) != 0 || !got.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("got %+v", got)
	}
	pv := fencedPV("pvc-a", rbdDriver, "one", withSecret("s"))
	pv.Spec.CSI.VolumeAttributes["pool"], pv.Spec.CSI.VolumeAttributes["secretive"] = "p", "x"
	pv.Spec.CSI.ControllerExpandSecretRef = &corev1.SecretReference{Name: "x"}
	block := corev1.PersistentVolumeBlock
	pv.Spec.VolumeMode = &block
	if slim, err = caches.FencedVolume(true)(pv.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if v := FenceVolume(slim.(*corev1.PersistentVolume)); v.ClusterID != "one" || !v.Block || v.Secret == nil || v.Attributes["pool"] != "p" || v.Attributes["secretive"] != "" || slim.(*corev1.PersistentVolume).Spec.CSI.ControllerExpandSecretRef != nil {
		t.Errorf("got %+v", v)
	}
	if slim, err = caches.FencedVolume(false)(pv.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if v := FenceVolume(slim.(*corev1.PersistentVolume)); v.ClusterID != "one" || v.Secret == nil || v.Attributes["pool"] != "" {
		t.Errorf("where Ceph is not asked: got %+v", v)
	}
	if slim, err = caches.SlimPersistentVolume(pv.DeepCopy()); err != nil || FenceVolume(slim.(*corev1.PersistentVolume)).ClusterID != "" {
		t.Errorf("kept for those who do not fence: %+v (%v)", slim, err)
	}
	class := fencedStorageClass("block", rbdDriver, "one", "s")
	if slim, err = caches.FencedClass(class.DeepCopy()); err != nil || classSecret(slim.(*storagev1.StorageClass)) == nil || storageClassIdentity(slim.(*storagev1.StorageClass)).clusterID != "one" {
		t.Errorf("got %+v (%v)", slim, err)
	}
}

// A pod of a storage system's own namespace may wait for a fence, too.
func TestCopiesOfPodsKeepTheirGates(t *testing.T) {
	for name, transform := range map[string]func(any) (any, error){"storage": caches.StoragePod, "components": caches.SlimPods(nil), "gated": caches.GatedPod} {
		pod := fencedClient("x", "node-1", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: fence.SchedulingGate}}
		})
		if slim, err := transform(pod); err != nil || len(slim.(*corev1.Pod).Spec.SchedulingGates) != 1 {
			t.Errorf("%s: got %+v (%v)", name, slim, err)
		}
	}
}

// A volume may be attached before the cache has seen its PersistentVolume.
func TestVolumeThatTheCacheHasNotSeenIsHeld(t *testing.T) {
	node, attached := fencedNodeObject("node-1", "192.168.1.1"), attachedAt("pvc-a", rbdDriver, "node-1", fenceNoon)
	r := fenceWorld{objects: []client.Object{node, attached}}.reader(t)
	r.live = fenceWorld{objects: []client.Object{node, attached, fencedPV("pvc-a", rbdDriver, "one")}}.reader(t).live
	if view := onlyView(t, r, "node-1", fenceNoon); !slices.Equal(names(view.Facts.Holding), []string{"pvc-a"}) {
		t.Fatalf("holds %v", view.Facts.Holding)
	}
}
