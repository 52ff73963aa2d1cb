package fences

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// recordOf the boot that objects.Node shows.
func recordOf(node string, spec v1alpha1.NodeFenceSpec, phase v1alpha1.NodeFencePhase, reason string) *v1alpha1.NodeFence {
	spec.NodeName = node
	if spec.Boot.BootID == "" {
		spec.Boot = v1alpha1.Boot{SystemUUID: "machine-" + node, BootID: "boot-" + node}
	}
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: fence.RecordName(node, spec.Boot), UID: "uid-record"}, Spec: spec}
	n.Status = v1alpha1.NodeFenceStatus{Phase: phase, Reason: reason, VolumeCount: len(spec.Volumes)}
	return n
}

func lostRecord(spec v1alpha1.NodeFenceSpec) *v1alpha1.NodeFence {
	return recordOf("node-1", spec, v1alpha1.NodeLost, fence.ReasonNotReady)
}

func clientOf(driver, class, cidr string) v1alpha1.StorageIdentity {
	return v1alpha1.StorageIdentity{Driver: driver, ClusterID: "rook-ceph", Class: class, Addresses: []v1alpha1.ClientAddress{
		{CIDR: cidr, Source: fence.SourceCSIAddonsNode, LastSeen: clitest.Before(2 * time.Minute)},
	}}
}

func volumeOf(driver, name string) v1alpha1.HeldVolume {
	return v1alpha1.HeldVolume{PersistentVolume: name, Driver: driver, VolumeHandle: "handle-" + name, ClusterID: "rook-ceph"}
}

// records are nodes in all states that a table shows.
func records() []client.Object {
	lost := clitest.Before(7 * time.Minute)
	moved := clientOf(objects.RBD, "rbd", "10.0.0.2/32")
	moved.Addresses = append(moved.Addresses, v1alpha1.ClientAddress{CIDR: "10.0.0.9/32", Source: fence.SourceCSIAddonsNode, LastSeen: clitest.Before(40 * time.Minute), Earlier: true})
	silent := v1alpha1.StorageIdentity{Driver: objects.CephFS, ClusterID: "rook-ceph", Secret: &v1alpha1.SecretReference{Name: "csi", Namespace: "rook-ceph"}, Problem: "no client pod is on the node"}
	requested := v1alpha1.Fence{
		Name: "fairlead-node-2-cd34-ab12", Driver: objects.RBD, ClusterID: "rook-ceph", Class: "rbd", CIDRs: []string{"10.0.0.2/32", "10.0.0.9/32"},
		State: v1alpha1.FenceRequested, Message: "mon is down\x1b[2J",
	}
	byHand, shared := volumeOf(objects.RBD, "pvc-b"), volumeOf(objects.CephFS, "pvc-c")
	byHand.Released, shared.Shared, shared.Until = true, true, ptr.To(clitest.Before(-3*time.Minute))
	working := v1alpha1.NodeFenceSpec{Identities: []v1alpha1.StorageIdentity{clientOf(objects.RBD, "rbd", "10.0.0.1/32")}, Volumes: []v1alpha1.HeldVolume{volumeOf(objects.RBD, "pvc-a")}}
	fencing := recordOf("node-2", v1alpha1.NodeFenceSpec{
		LostSince: &lost, Identities: []v1alpha1.StorageIdentity{moved, silent}, Volumes: []v1alpha1.HeldVolume{byHand, shared}, Fences: []v1alpha1.Fence{requested},
	}, v1alpha1.NodeFencing, fence.ReasonDriverFailed)
	fencing.Status.Message = fence.Linked("rook-ceph.rbd.csi.ceph.com of rook-ceph: mon is down\x1b[2J (failed 3 times; Fairlead retries)", fence.ReasonDriverFailed)
	returned := recordOf("node-3", v1alpha1.NodeFenceSpec{Over: true}, v1alpha1.NodeReturned, fence.ReasonTainted)
	returned.Status.Message = fence.Linked("the node has rebooted; to readmit the node: kubectl taint nodes node-3 node.kubernetes.io/out-of-service-", fence.ReasonTainted)
	return []client.Object{
		recordOf("node-1", working, v1alpha1.NodeHealthy, fence.ReasonReady), fencing, returned,
		recordOf("node-0", v1alpha1.NodeFenceSpec{}, v1alpha1.NodeHealthy, fence.ReasonTaintedButReady),
	}
}

func show(t *testing.T, live client.Client, output string, want error, args ...string) string {
	t.Helper()
	return clitest.Output(t, want, func(out io.Writer) error { return showFences(t.Context(), out, live, output, args, clitest.Noon) })
}

// Nodes that need people come first.
func TestFencesAreShown(t *testing.T) {
	live := clitest.Client(t, interceptor.Funcs{}, records()...)
	clitest.Golden(t, "fences.txt", show(t, live, cli.OutputTable, cli.ExitWaits))
	clitest.Golden(t, "fences-healthy.txt", show(t, live, cli.OutputTable, nil, "node-1"))
	clitest.Golden(t, "fences-fencing.txt", show(t, live, cli.OutputTable, cli.ExitWaits, "node-2"))
	clitest.Golden(t, "fences-returned.txt", show(t, live, cli.OutputTable, cli.ExitWaits, "node-3"))
	clitest.Golden(t, "fences-fencing.json", show(t, live, cli.OutputJSON, cli.ExitWaits, "node-2"))
	show(t, live, cli.OutputTable, errNoRecord, "node-9")
	if out := show(t, clitest.Client(t, interceptor.Funcs{}), cli.OutputTable, nil); !strings.HasPrefix(out, "No NodeFences") {
		t.Errorf("got %s", out)
	}
}

// A machine with the name of a fenced machine has its own record.
func TestAllBootsOfNameAreShown(t *testing.T) {
	before := v1alpha1.NodeFenceSpec{Boot: v1alpha1.Boot{SystemUUID: "another", BootID: "a"}}
	live := clitest.Client(t, interceptor.Funcs{},
		recordOf("node-1", before, v1alpha1.NodeDrained, fence.ReasonReplaced), recordOf("node-1", v1alpha1.NodeFenceSpec{}, v1alpha1.NodeHealthy, fence.ReasonReady),
		recordOf("node-2", v1alpha1.NodeFenceSpec{}, v1alpha1.NodeHealthy, ""))
	clitest.Golden(t, "fences-two-boots.txt", show(t, live, cli.OutputTable, cli.ExitWaits, "node-1"))
}

// drillWorld has node-1 with volumes of two drivers.
func drillWorld(record *v1alpha1.NodeFence) []client.Object {
	node := func(name, address string) *corev1.Node {
		return objects.Node(name, objects.Readiness(corev1.ConditionTrue, clitest.Noon.Add(-time.Hour)), func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
		})
	}
	one := node("node-1", "192.168.1.1")
	one.Status.VolumesInUse = []corev1.UniqueVolumeName{corev1.UniqueVolumeName(fence.UniqueName(objects.RBD, "handle-pvc-b"))}
	world := []client.Object{
		objects.Lease(clitest.Noon), one, node("node-2", "10.0.0.2"),
		objects.CephVolume("pvc-a", objects.RBD, "rook-ceph"), objects.CephVolume("pvc-b", objects.RBD, "rook-ceph"), objects.CephVolume("pvc-c", objects.CephFS, "rook-ceph"),
		objects.Attachment("pvc-a", "node-1", objects.RBD), objects.Attachment("pvc-c", "node-1", objects.CephFS),
	}
	if record != nil {
		world = append(world, record)
	}
	return world
}

func drillRecord(identities ...v1alpha1.StorageIdentity) *v1alpha1.NodeFence {
	seen := clitest.Before(time.Minute)
	volumes := []v1alpha1.HeldVolume{volumeOf(objects.RBD, "pvc-a"), volumeOf(objects.RBD, "pvc-b"), volumeOf(objects.CephFS, "pvc-c")}
	return recordOf("node-1", v1alpha1.NodeFenceSpec{LastSeen: &seen, Identities: identities, Volumes: volumes}, v1alpha1.NodeHealthy, fence.ReasonReady)
}

func drill(t *testing.T, live client.Client, output, node string, want error) string {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nfencing:\n  profiles: [{name: rook-ceph}]\n"))
	must.Do(t, err)
	return clitest.Output(t, want, func(out io.Writer) error {
		return showDrill(t.Context(), out, live, c.Fencing, output, node, clocktesting.NewFakePassiveClock(clitest.Noon))
	})
}

func TestDrills(t *testing.T) {
	rbd, cephFS := clientOf(objects.RBD, "rbd", "10.0.0.1/32"), clientOf(objects.CephFS, "cephfs", "10.0.0.1/32")
	otherNode := clientOf(objects.CephFS, "cephfs", "10.0.0.2/32")
	for _, test := range []struct {
		name, output string
		record       *v1alpha1.NodeFence
		want         error
	}{
		{"drill-fenceable.txt", cli.OutputTable, drillRecord(rbd, cephFS), nil},
		{"drill-fenceable.json", cli.OutputJSON, drillRecord(rbd, cephFS), nil},
		{"drill-unfenceable.txt", cli.OutputTable, drillRecord(rbd, otherNode), exitUnfenceable},
		{"drill-unfenceable.json", cli.OutputJSON, drillRecord(rbd), exitUnfenceable},
		{"drill-no-record.txt", cli.OutputTable, nil, exitUnfenceable},
	} {
		clitest.Golden(t, test.name, drill(t, clitest.Client(t, interceptor.Funcs{}, drillWorld(test.record)...), test.output, "node-1", test.want))
	}
}

// oldLease was last renewed by a controller that is gone.
func oldLease() *coordinationv1.Lease { return objects.Lease(clitest.Noon.Add(-time.Hour)) }

// Regression: a drill passed while nothing ran that fences.
func TestDrillNeedsController(t *testing.T) {
	world := drillWorld(drillRecord(clientOf(objects.RBD, "rbd", "10.0.0.1/32"), clientOf(objects.CephFS, "cephfs", "10.0.0.1/32")))[1:]
	out := drill(t, clitest.Client(t, interceptor.Funcs{}, append(world, oldLease())...), cli.OutputTable, "node-1", exitUnfenceable)
	must.Check(t, strings.HasPrefix(out, "Node node-1 could NOT be fenced now.\nNo controller of Fairlead leads, so nothing fences a node: fairlead check\n"), "got %s", out)
	noRight := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if _, lease := o.(*coordinationv1.Lease); lease {
			return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, key.Name, errors.New("denied"))
		}
		return c.Get(ctx, key, o, options...)
	}}
	drill(t, clitest.Client(t, noRight, append(world, oldLease())...), cli.OutputTable, "node-1", nil)
}

// Waiting does not make such a node harmless.
func TestNodeWithOldMountsIsWrong(t *testing.T) {
	byHand := volumeOf(objects.RBD, "pvc-a")
	byHand.Released = true
	spec := v1alpha1.NodeFenceSpec{Volumes: []v1alpha1.HeldVolume{byHand}}
	for name, record := range map[string]*v1alpha1.NodeFence{
		"untainted": recordOf("node-1", spec, v1alpha1.NodeHealthy, fence.ReasonOldMounts),
		"tainted":   recordOf("node-1", spec, v1alpha1.NodeHealthy, fence.ReasonTaintedButReady),
		"asked for": recordOf("node-1", spec, v1alpha1.NodeFencing, fence.ReasonOldMounts),
	} {
		out := show(t, clitest.Client(t, interceptor.Funcs{}, record), cli.OutputTable, cli.ExitWrong, "node-1")
		must.Check(t, strings.Contains(out, "the machine to be switched off or rebooted") && strings.Contains(out, "reboot the machine"), "%s: %s", name, out)
	}
	show(t, clitest.Client(t, interceptor.Funcs{}, recordOf("node-1", spec, v1alpha1.NodeLost, fence.ReasonReleased)), cli.OutputTable, cli.ExitWaits, "node-1")
}

// The taint starts no fence then, so it is not the next thing to do.
func TestControllerComesBackBeforeTheTaint(t *testing.T) {
	lost := lostRecord(v1alpha1.NodeFenceSpec{})
	views, err := Read(t.Context(), clitest.Client(t, interceptor.Funcs{}, lost))
	must.Do(t, err)
	must.Check(t, strings.HasPrefix(views[0].Next, "kubectl taint nodes node-1 ") && views[0].OnlyIf != "", "with a controller: %+v", views[0])
	must.Do(t, CompareNodes(t.Context(), clitest.Client(t, interceptor.Funcs{}), views))
	must.Check(t, strings.HasPrefix(views[0].Message, "no controller of Fairlead leads, "), "got %s", views[0].Message)
	must.Equal(t, [3]string{views[0].WaitsFor, views[0].Next, views[0].OnlyIf}, [3]string{"a controller of Fairlead", "fairlead check", ""})
}

// Regression: while no controller led, lost nodes were shown as Healthy.
func TestLostNodesAreShownWithoutController(t *testing.T) {
	healthy := recordOf("node-1", v1alpha1.NodeFenceSpec{}, v1alpha1.NodeHealthy, fence.ReasonReady)
	node := func(ready corev1.ConditionStatus, boot string) *corev1.Node {
		return objects.Node("node-1", objects.Readiness(ready, clitest.Noon), func(n *corev1.Node) { n.Status.NodeInfo.BootID = boot })
	}
	const boot = "boot-node-1"
	bare := node(corev1.ConditionTrue, boot)
	bare.Status.Conditions = nil
	for name, test := range map[string]struct {
		world []client.Object
		want  string
	}{
		"not Ready":    {[]client.Object{oldLease(), node(corev1.ConditionUnknown, boot)}, "the node is not Ready"},
		"no condition": {[]client.Object{oldLease(), bare}, "the node is not Ready"},
		"deleted":      {[]client.Object{oldLease()}, "the Node was deleted"},
		"another boot": {[]client.Object{oldLease(), node(corev1.ConditionTrue, "boot-2")}, "the Node shows another boot"},
		"Ready":        {[]client.Object{oldLease(), node(corev1.ConditionTrue, boot)}, ""},
		"a controller leads, and will record the loss": {[]client.Object{objects.Lease(clitest.Noon), node(corev1.ConditionUnknown, boot)}, ""},
		"no Lease is known":                            {[]client.Object{node(corev1.ConditionUnknown, boot)}, ""},
	} {
		var want error
		if test.want != "" {
			want = cli.ExitWaits
		}
		out := show(t, clitest.Client(t, interceptor.Funcs{}, append(test.world, healthy.DeepCopy())...), cli.OutputTable, want, "node-1")
		must.Check(t, strings.Contains(out, "Phase:      Unknown") == (test.want != "") && strings.Contains(out, test.want), "%s: got %s", name, out)
	}
}

func TestDrillErrors(t *testing.T) {
	drained := recordOf("node-1", v1alpha1.NodeFenceSpec{Fences: []v1alpha1.Fence{{State: v1alpha1.FenceFenced}}}, v1alpha1.NodeDrained, fence.ReasonDrained)
	live := clitest.Client(t, interceptor.Funcs{}, append(drillWorld(drained), records()[2])...)
	must.Equal(t, drill(t, live, cli.OutputTable, "node-1", errNotHealthy), "")
	must.Equal(t, drill(t, live, cli.OutputTable, "node-9", errNoNode), "")
	if err := showDrill(t.Context(), io.Discard, live, config.Fencing{}, cli.OutputTable, "node-1", clocktesting.NewFakePassiveClock(clitest.Noon)); !errors.Is(err, errNoFencing) {
		t.Errorf("got %v", err)
	}
	if out := drill(t, live, cli.OutputTable, "node-2", exitUnfenceable); !strings.Contains(out, "node node-2 is not on record") {
		t.Errorf("got %s", out)
	}
}

func TestFencesNameTheMissingRight(t *testing.T) {
	failing := func(err error) client.Client {
		return clitest.Client(t, interceptor.Funcs{List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return err }})
	}
	forbidden := failing(apierrors.NewForbidden(schema.GroupResource{Group: "fairlead.io", Resource: "nodefences"}, "",
		errors.New(`User "alice" cannot list resource "nodefences" in API group "fairlead.io" at the cluster scope`)))
	err := explainFences(showFences(t.Context(), io.Discard, forbidden, cli.OutputTable, nil, clitest.Noon))
	if err == nil || !strings.HasPrefix(err.Error(), "you may not list nodefences.fairlead.io in the whole cluster; ClusterRole fairlead-fence-viewer allows it") {
		t.Errorf("got %v", err)
	}
	show(t, failing(&meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "fairlead.io", Kind: "NodeFence"}}), cli.OutputTable, ErrNotInstalled)
}

// Regression: the advice to taint a node named no volume that Kubernetes would detach without a fence.
func TestTaintNamesVolumesWithoutFence(t *testing.T) {
	lost := lostRecord(v1alpha1.NodeFenceSpec{Identities: []v1alpha1.StorageIdentity{clientOf(objects.RBD, "rbd", "10.0.0.1/32")}})
	const off = "the machine is off: Kubernetes detaches all its volumes by force then"
	for name, test := range map[string]struct {
		attached []client.Object
		list     func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error
		want     string
	}{
		"fenced":     {[]client.Object{objects.Attachment("pvc-a", "node-1", objects.RBD)}, nil, off},
		"not fenced": {[]client.Object{objects.Attachment("pvc-b", "node-1", "driver.longhorn.io"), objects.Attachment("pvc-c", "node-2", "driver.longhorn.io")}, nil, off + ", also those that nothing fences: pvc-b of driver.longhorn.io"},
		"no right": {nil, func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, attachments := list.(*storagev1.VolumeAttachmentList); attachments {
				return apierrors.NewForbidden(schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}, "", errors.New("denied"))
			}
			return c.List(ctx, list, options...)
		}, off + ", also those that nothing fences, such as Longhorn's"},
	} {
		views, err := Read(t.Context(), clitest.Client(t, interceptor.Funcs{List: test.list}, append(test.attached, lost)...))
		must.Do(t, err)
		must.Equal(t, views[0].OnlyIf, test.want, "%s", name)
	}
}
