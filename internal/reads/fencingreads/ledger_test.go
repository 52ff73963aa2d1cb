package fencingreads

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// used is a volume of the driver on node-1.
func used(driver, clusterID string) []client.Object {
	return []client.Object{objects.CephVolume("pvc-"+clusterID, driver, clusterID), attachedAt("pvc-"+clusterID, driver, "node-1", fenceNoon)}
}

func TestSourcesOfTheLedger(t *testing.T) {
	node := nodeAt("node-1", "192.168.1.1")
	class := objects.CephClass("block", rbd, "one", "provisioner")
	host := objects.ClientPod("csi-rbdplugin", "node-1")
	public, ofNode := config.FencingProfile{Network: "rook-ceph/public"}, config.FencingProfile{Addresses: config.AddressesNode}
	registered := func(nodeID string) client.Object {
		return &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: rbd, NodeID: nodeID}}}}
	}
	const silent = "rbd/one:  class fast secret rook-ceph/provisioner problem csi-addons has reported no address of the node since it booted for NetworkFenceClass fast: csi-addons' controller manager must run, its sidecar in the plugin pod of " + rbd + " on the node, and the CSIAddonsNode be Connected: kubectl -n rook-ceph get csiaddonsnodes -o yaml"
	const classless = "rbd/one:  secret rook-ceph/provisioner problem no NetworkFenceClass is for " + rbd + ` and clusterID "one": create one, so that csi-addons reports by which addresses the storage knows the node; if those are the Node object's own, set fencing.profiles[rook-ceph].addresses to node`
	fast, own := objects.FenceClass("fast", rbd, "one"), objects.AddonsNode("a", rbd, "node-1", "fast", "192.168.20.1/32")
	unasked := own.DeepCopy() // csi-addons has not asked again
	unasked.Status.State = "Retrying"
	former := own.DeepCopy() // csi-addons' manager is down since the node booted
	former.Annotations[ReportedInAnnotation] = "boot-before"
	restarted := own.DeepCopy() // csi-addons' manager is down since the plugin pod was recreated
	restarted.Annotations[ReportedInAnnotation], restarted.Spec.Driver.EndPoint = "boot-node-1 pod://old.rook-ceph:9070", "pod://new.rook-ceph:9070"
	client1 := func(podIP string, interfaces ...string) *corev1.Pod {
		return objects.ClientPod("csi-rbdplugin", "node-1", onNetwork(podIP, interfaces...))
	}
	onPublic := client1("10.244.1.7", "rook-ceph/public@net7=192.168.20.1", "rook-ceph/other@net1=192.168.30.1")
	next, failed := client1("10.244.1.8", "rook-ceph/public@net1=192.168.20.2"), client1("10.244.1.9", "rook-ceph/public@net1=192.168.20.3")
	next.Name, failed.Name, failed.Status.Phase = "new", "old", corev1.PodFailed
	newOperators := objects.ClientPod(rbd+"-nodeplugin", "node-1", onNetwork("10.244.1.7", "rook-ceph/public@net1=192.168.20.1", "rook-ceph/public@net2=fd00:20::1"))
	const secret = " secret rook-ceph/provisioner"
	type all = []client.Object
	for name, test := range map[string]struct {
		profile config.FencingProfile
		objects all // beside the storage class
		want    string
	}{
		"both families": {config.FencingProfile{}, all{node, host, fast, objects.AddonsNode("a", rbd, "node-1", "fast", "192.168.20.1/32", "fd00:20::1/128")},
			"rbd/one: CSIAddonsNode 192.168.20.1/32, CSIAddonsNode fd00:20::1/128 id fsid class fast" + secret},
		"node-1 is not node-11": {config.FencingProfile{}, all{node, host, registered("node-1"), fast, objects.AddonsNode("a", rbd, "node-11", "fast", "192.168.20.11/32")}, silent},
		"the driver has its own node ID": {config.FencingProfile{}, all{node, host, registered("i-0815"), fast, objects.AddonsNode("a", rbd, "node-1", "fast", "192.168.20.9/32"),
			objects.With(objects.AddonsNode("b", rbd, "i-0815", "fast", "192.168.20.1/32"), func(n *csiaddons.CSIAddonsNode) { n.Annotations[ReportedInAnnotation] = "boot-node-1" })}, "rbd/one: CSIAddonsNode 192.168.20.1/32 id fsid class fast" + secret},
		"an outdated report":          {config.FencingProfile{}, all{node, host, registered("node-1"), fast, unasked}, silent},
		"a report of an earlier boot": {config.FencingProfile{}, all{node, host, registered("node-1"), fast, former}, silent},
		"a report of an earlier pod":  {config.FencingProfile{}, all{node, host, registered("node-1"), fast, restarted}, silent},
		"another driver's report":     {config.FencingProfile{}, all{node, host, registered("node-1"), fast, objects.AddonsNode("a", cephfs, "node-1", "fast", "192.168.20.1/32")}, silent},
		"a missing class":             {config.FencingProfile{}, all{node, host, registered("node-1"), own}, classless},
		"a driver that is not there":  {config.FencingProfile{}, all{node, fast}, ""},
		"a wide mask, to be refused":  {config.FencingProfile{}, all{node, host, fast, objects.AddonsNode("a", rbd, "node-1", "fast", "fd00:20::1/32")}, "rbd/one: CSIAddonsNode fd00:20::1/32 id fsid class fast" + secret},
		"the first class by name": {config.FencingProfile{}, all{node, host, objects.FenceClass("b", rbd, "one"), objects.FenceClass("a", rbd, "one"), objects.AddonsNode("a", rbd, "node-1", "b", "192.168.20.1/32")},
			"rbd/one: CSIAddonsNode 192.168.20.1/32 id fsid class a" + secret},
		"any interface of the storage network": {public, all{node, onPublic}, "rbd/one: Multus 192.168.20.1/32" + secret},
		"the storage network, not csi-addons":  {public, all{node, onPublic, fast, own}, "rbd/one: Multus 192.168.20.1/32 class fast" + secret},
		"the new operator's client pods":       {public, all{node, newOperators}, "rbd/one: Multus 192.168.20.1/32, Multus fd00:20::1/128" + secret},
		"a leaving pod may have mounts":        {public, all{node, client1("10.244.1.7", "rook-ceph/public@net1=192.168.20.1"), next, failed}, "rbd/one: Multus 192.168.20.1/32, Multus 192.168.20.2/32" + secret},
		"every internal address of the Node":   {ofNode, all{nodeAt("node-1", "192.168.1.1", "2001:db8::1:0"), host}, "rbd/one: Node 192.168.1.1/32, Node 2001:db8::1:0/128" + secret},
		"another driver's plugin":              {ofNode, all{node, objects.ClientPod("csi-cephfsplugin", "node-1")}, ""},
		"another storage system's driver":      {ofNode, append(used("driver.longhorn.io", ""), node, host, objects.CephClass("lh", "driver.longhorn.io", "", "x")), "rbd/one: Node 192.168.1.1/32" + secret},
		"several clusters, and both drivers": {ofNode, all{node, objects.CephClass("block-2", rbd, "two", "second"), objects.CephClass("files", cephfs, "one", "files"), host, objects.ClientPod("csi-cephfsplugin", "node-1")},
			"cephfs/one: Node 192.168.1.1/32 secret rook-ceph/files; rbd/one: Node 192.168.1.1/32" + secret + "; rbd/two: Node 192.168.1.1/32 secret rook-ceph/second"},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{profile: test.profile, objects: append(test.objects, class)}.facts(t, "node-1")
			got := strings.Join(written(view.Facts.Ledger), "; ")
			must.True(t, got == test.want, "got  %q\nwant %q", got, test.want)
		})
	}
}

// A used identity without an address names the setting to change.
func TestIdentityWithoutAddressNamesConfiguration(t *testing.T) {
	node := nodeAt("node-1", "192.168.1.1")
	public, ofNode := config.FencingProfile{Network: "rook-ceph/public"}, config.FencingProfile{Addresses: config.AddressesNode}
	plugin := func(changes ...func(*corev1.Pod)) client.Object {
		return objects.ClientPod("csi-rbdplugin", "node-1", changes...)
	}
	type all = []client.Object
	for name, test := range map[string]struct {
		profile config.FencingProfile
		objects all
		want    string
	}{
		"no class":            {config.FencingProfile{}, all{node}, "no NetworkFenceClass is for " + rbd},
		"no client pod":       {ofNode, all{node}, "no client pod of rook-ceph.rbd.csi.ceph.com is on the node"},
		"the cluster network": {ofNode, all{node, plugin(onNetwork("10.244.1.7"))}, "remove addresses: node from fencing.profiles[rook-ceph]"},
		"Multus is silent": {public, all{node, plugin(onNetwork("10.244.1.7", "rook-ceph/other@net1=192.168.30.1"))},
			"Multus reports no address of client pod csi-rbdplugin-node-1 on network rook-ceph/public"},
		"the host network, though a network is configured": {public, all{node, plugin()}, "remove network"},
		"a node without an address":                        {ofNode, all{nodeAt("node-1"), plugin()}, "no internal address"},
		"one of two": {public, all{node, plugin(onNetwork("10.244.1.7", "rook-ceph/public@net1=192.168.20.1")), plugin(onNetwork("10.244.1.8"), func(p *corev1.Pod) { p.Name = "new" })},
			"Multus reports no address of client pod new"},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{profile: test.profile, objects: append(test.objects, used(rbd, "one")...)}.facts(t, "node-1")
			if len(view.Facts.Ledger) != 1 || len(view.Facts.Ledger[0].Addresses) != 0 || !strings.Contains(view.Facts.Ledger[0].Problem, test.want) {
				t.Fatalf("got %q, want %q", written(view.Facts.Ledger), test.want)
			}
		})
	}
}

func TestSecretsToFenceWith(t *testing.T) {
	node, host := nodeAt("node-1", "192.168.1.1"), objects.ClientPod("csi-rbdplugin", "node-1")
	on := attachedAt("pvc-a", rbd, "node-1", fenceNoon)
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"of the class, before that of the volume": {[]client.Object{objects.CephVolume("pvc-a", rbd, "one", withSecret("volume")), objects.CephClass("block", rbd, "one", "class")}, "class"},
		"of the class of the cluster":             {[]client.Object{objects.CephVolume("pvc-a", rbd, "one"), objects.CephClass("a", rbd, "two", "other"), objects.CephClass("b", rbd, "one", "class")}, "class"},
		"no template":                             {[]client.Object{objects.CephVolume("pvc-a", rbd, "one"), objects.CephClass("a", rbd, "one", "${pvc.name}"), objects.CephClass("b", rbd, "one", "class")}, "class"},
		"a static volume takes another volume's":  {[]client.Object{objects.CephVolume("pvc-a", rbd, "one"), objects.CephVolume("pvc-b", rbd, "two", withSecret("wrong")), objects.CephVolume("pvc-d", rbd, "one", withSecret("last")), objects.CephVolume("pvc-c", rbd, "one", withSecret("first"))}, "first"},
		"none":                                    {[]client.Object{objects.CephVolume("pvc-a", rbd, "one")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			view := fenceWorld{objects: append(test.objects, node, host, on)}.facts(t, "node-1")
			got := ""
			for _, i := range view.Facts.Ledger {
				if i.ClusterID == "one" && i.Secret != nil {
					got = i.Secret.Name
				}
			}
			must.Equal(t, got, test.want)
		})
	}
}

// Objects without a known volume do not hide the other volumes.
func TestHoldingNamesVolumesThatAreGoneByHandle(t *testing.T) {
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
	lost := nodeAt("node-1", "192.168.1.1")
	lost.Status.Conditions[0].Status = corev1.ConditionUnknown
	lost.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + rbd + "^handle-static", "kubernetes.io/nfs/x", "kubernetes.io/csi/" + rbd + "^gone"}
	lost.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/" + rbd + "^handle-released"}}
	pod := podWith("app", "claim-files", "claim-nfs", "claim-unbound")
	inline := attachedAt("x", rbd, "node-1", fenceNoon)
	inline.Name, inline.Spec.Source.PersistentVolumeName = "inline", nil
	view := fenceWorld{objects: []client.Object{
		lost, nodeAt("node-11", "192.168.1.11"),
		objects.CephVolume("pvc-a", rbd, "one"), attachedAt("pvc-a", rbd, "node-1", fenceNoon),
		objects.CephVolume("pvc-other", rbd, "one"), attachedAt("pvc-other", rbd, "node-11", fenceNoon),
		objects.CephVolume("static", rbd, "one", static), objects.CephVolume("released", rbd, "one", func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }),
		objects.CephVolume("shared", cephfs, "one", mode(corev1.ReadWriteMany)), attachedAt("shared", cephfs, "node-1", fenceNoon),
		objects.CephVolume("read", cephfs, "one", mode(corev1.ReadOnlyMany)), attachedAt("read", cephfs, "node-1", fenceNoon),
		objects.CephVolume("files", cephfs, "two"), pod,
		objects.CephVolume("files-before", cephfs, "two", func(pv *corev1.PersistentVolume) {
			pv.Spec.ClaimRef.Name, pv.Status.Phase = "claim-files", corev1.VolumeReleased
		}),
		objects.CephVolume("nfs", "", "", notCSI), attachedAt("nfs", rbd, "node-1", fenceNoon),
		attachedAt("deleted", rbd, "node-1", fenceNoon), inline,
		objects.CephVolume("lh", "driver.longhorn.io", ""), attachedAt("lh", "driver.longhorn.io", "node-1", fenceNoon),
	}}.facts(t, "node-1")
	if got, want := fence.VolumeNames(view.Facts.Holding), []string{"gone", "pvc-a", "released", "shared", "static"}; !slices.Equal(got, want) {
		t.Errorf("holds %v, want %v", got, want)
	}
	want := []string{
		"VolumeAttachment va-deleted-node-1 of deleted", "VolumeAttachment va-nfs-node-1 of nfs", "VolumeAttachment va-pvc-a-node-1 of pvc-a",
		"VolumeAttachment va-read-node-1 of read", "VolumeAttachment va-shared-node-1 of shared",
	}
	must.True(t, slices.Equal(view.Facts.Left, want), "left: %q\nwant  %q", view.Facts.Left, want)
	for _, h := range view.Facts.Holding {
		must.True(t, h.Shared == (h.PersistentVolume == "shared"), "%+v", h)
	}
}

// Without attachments nothing can be held, so the node is reported even though its addresses are known.
func TestDriverWithoutAttachmentsIsAProblem(t *testing.T) {
	of := func(name string, attach *bool) client.Object {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{AttachRequired: attach}}
	}
	for name, test := range map[string]struct {
		driver  client.Object
		problem bool
	}{
		"false":             {of(rbd, ptr.To(false)), true},
		"true":              {of(rbd, ptr.To(true)), false},
		"the default":       {of(rbd, nil), false},
		"of another driver": {of("nfs.csi.k8s.io", ptr.To(false)), false},
	} {
		t.Run(name, func(t *testing.T) {
			world := fenceWorld{profile: config.FencingProfile{Addresses: config.AddressesNode}, objects: []client.Object{nodeAt("node-1", "192.168.1.1"), objects.ClientPod("csi-rbdplugin", "node-1"), test.driver}}
			world.objects = append(world.objects, used(rbd, "one")...)
			ledger := world.facts(t, "node-1").Facts.Ledger
			must.True(t, len(ledger) == 1 && len(ledger[0].Addresses) == 1, "got %v", written(ledger))
			must.Equal(t, strings.Contains(ledger[0].Problem, "attachRequired: true"), test.problem, ledger[0].Problem)
		})
	}
}

// Kubernetes may attach to a node that is not Ready, and a kubelet may flap after the boot. Only attachments that are older
// than the fence are old.
func TestAttachmentsOlderThanFenceAreOld(t *testing.T) {
	back := fenceNoon.Add(-time.Hour) // the node's condition
	asked := back.Add(-time.Hour)
	record := recordOf("node-1")
	record.Spec.Fences = []v1alpha1.Fence{{Name: "second", Since: metav1.NewTime(back)}, {Name: "first", Since: metav1.NewTime(asked)}}
	all := []client.Object{
		nodeAt("node-1", "192.168.1.1"), objects.CephVolume("old", rbd, "one"), objects.CephVolume("new", rbd, "one"),
		attachedAt("old", rbd, "node-1", asked), attachedAt("new", rbd, "node-1", asked.Add(time.Second)),
	}
	for name, created := range map[string]time.Time{"old": asked, "new": asked.Add(time.Second)} {
		all = append(all, objects.With(podWith("app-"+name, "claim-"+name), objects.CreatedAt[*corev1.Pod](metav1.NewTime(created))))
	}
	got := (fenceWorld{objects: append(all, record)}).facts(t, "node-1").Facts
	if !slices.Equal(got.OldAttachments, []string{"VolumeAttachment va-old-node-1 of old"}) || !slices.Equal(got.OldPods, []string{"default/app-old"}) {
		t.Errorf("got %q and %q", got.OldAttachments, got.OldPods)
	}
	// Fairlead's clock was behind the API server's when Fairlead requested the fence.
	made := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "first", CreationTimestamp: metav1.NewTime(asked.Add(time.Minute))}}
	if got := (fenceWorld{objects: append(all, record, made)}).facts(t, "node-1").Facts.OldAttachments; len(got) != 2 {
		t.Errorf("old by the API server's clock are %q", got)
	}
	if got := (fenceWorld{objects: all}).facts(t, "node-1").Facts.OldAttachments; len(got) != 0 {
		t.Errorf("old although nothing was fenced: %q", got)
	}
}

func TestOthersThatFenceCouldHurt(t *testing.T) {
	silent := nodeAt("node-1", "192.168.1.1")
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	osd := objects.ClientPod("rook-ceph-osd", "node-2", onNetwork("10.244.2.9", "rook-ceph/public@net1=192.168.20.90"), func(p *corev1.Pod) {
		p.Status.HostIPs = []corev1.HostIP{{IP: "192.168.1.2"}}
	})
	stray := &csiaddons.NetworkFence{ObjectMeta: metav1.ObjectMeta{Name: "stray"}, Spec: csiaddons.NetworkFenceSpec{FenceState: csiaddons.Unfenced, CIDRs: []string{"192.168.1.1/32"}}}
	r := fenceWorld{objects: []client.Object{silent, lost(recordOf("node-1")), nodeAt("node-2", "192.168.1.2"), recordOf("node-2", "x"), osd, stray, objects.ClientPod("csi-rbdplugin", "node-2", onNetwork("10.244.2.7", "rook-ceph/public@net1=192.168.20.2"))}}.reader(t)
	f := onlyView(t, now(t, r), "node-1", fenceNoon).Facts
	if len(f.Machines) != 2 || len(f.Servers) != 1 || len(f.Fences) != 1 || !f.Fences[0].Unfenced {
		t.Fatalf("got %+v, %+v, %+v", f.Machines, f.Servers, f.Fences)
	}
	must.True(t, len(f.Machines[1].Spec.Volumes) == 1, "got %+v", f.Machines[1])
	var addresses []string
	for _, a := range f.Machines[1].ClientAddresses {
		addresses = append(addresses, a.String())
	}
	want := []string{"10.244.2.7", "10.244.2.7", "192.168.20.2", "10.244.2.9", "10.244.2.9", "192.168.20.90"}
	must.True(t, slices.Equal(addresses, want), "clients have %v, want %v", addresses, want)
	s := f.Servers[0]
	must.True(t, s.Node == "node-2" && len(s.Addresses) == 4 && s.Addresses[3].String() == "192.168.1.2", "got %+v", s)
}

// Without csi-addons, another configured source fills the ledger.
func TestFactsWithoutCSIAddons(t *testing.T) {
	w := fenceWorld{profile: config.FencingProfile{Addresses: config.AddressesNode}, funcs: notInstalledFuncs(), objects: append(used(rbd, "one"), nodeAt("node-1", "192.168.1.1"), objects.ClientPod("csi-rbdplugin", "node-1"))}
	view := w.facts(t, "node-1")
	must.True(t, view.Facts.NoCSIAddons && len(view.Facts.Ledger) == 1 && len(view.Facts.Ledger[0].Addresses) == 1, "got %+v", view.Facts.Ledger)
}

// The cache's copies keep the fields that fencing reads, and no others.
func TestCopiesForFencing(t *testing.T) {
	node := nodeAt("node-1", "192.168.1.1")
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"x"}}}
	node.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(fenceNoon)
	node.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/" + rbd + "^a"}
	node.Spec.Taints = []corev1.Taint{{Key: "node.kubernetes.io/out-of-service", Value: "fairlead"}}
	want := FenceNode(node)
	slim, err := caches.SlimNode(node.DeepCopy())
	must.Do(t, err)
	got := slim.(*corev1.Node)
	if !FenceNode(got).ReadyChanged.Equal(want.ReadyChanged) || FenceNode(got).Boot != want.Boot || !FenceNode(got).OwnTaint || !slices.Equal(FenceNode(got).Addresses, want.Addresses) ||
		len(FenceNode(got).InUse) != 1 || len(got.Status.Images) != 0 || !got.Status.Conditions[0].LastHeartbeatTime.IsZero() {
		t.Errorf("got %+v", got)
	}
	class := objects.CephClass("block", rbd, "one", "s")
	if slim, err = caches.SlimStorageClass(class.DeepCopy()); err != nil || classSecret(slim.(*storagev1.StorageClass)) == nil || storageClassIdentity(slim.(*storagev1.StorageClass)).clusterID != "one" {
		t.Errorf("got %+v (%v)", slim, err)
	}
}

// A volume may be attached before the cache has seen its PersistentVolume.
func TestVolumeThatTheCacheHasNotSeenIsHeld(t *testing.T) {
	node, attached := nodeAt("node-1", "192.168.1.1"), attachedAt("pvc-a", rbd, "node-1", fenceNoon)
	r := fenceWorld{objects: []client.Object{node, attached}}.reader(t)
	r.live = fenceWorld{objects: []client.Object{node, attached, objects.CephVolume("pvc-a", rbd, "one")}}.reader(t).live
	view := onlyView(t, r, "node-1", fenceNoon)
	must.True(t, slices.Equal(fence.VolumeNames(view.Facts.Holding), []string{"pvc-a"}), "holds %v", view.Facts.Holding)
}
