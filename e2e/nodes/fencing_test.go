//go:build linux

package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/fence"
)

// fencingConfiguration unfences a rebooted node sooner than by default, after a minute.
const fencingConfiguration = "fencing: {profiles: [{name: rook-ceph}], returning: {readyFor: 3s}}"

// fencing is a cluster in which Fairlead fences.
type fencing struct {
	*Cluster
	t       *testing.T
	storage FencedStorage
}

// nodes returns a node to lose, which is not that of csi-addons' only manager, and another node.
func (f fencing) nodes(ctx context.Context) (node, other *Node) {
	f.t.Helper()
	pods, err := f.PodsWith(ctx, "csi-addons-system", "app.kubernetes.io/name", "csi-addons")
	must(f.t, err)
	i := slices.IndexFunc(f.Nodes, func(n *Node) bool { return n.Name != pods[0].Spec.NodeName })
	return f.Nodes[i], f.Nodes[(i+1)%len(f.Nodes)]
}

// writerCommand appends numbered lines, and has each on the disk before the next one.
const writerCommand = `i=0; while i=$((i+1)); do echo $i | dd of=/data/lines oflag=append conv=notrunc,fsync status=none; sleep 0.1; done`

// staleWriter cuts the management link of a node whose containers go on writing to an RWO volume over the storage link.
// No byte of that stale writer arrives after the fence; its node is kept out until it has rebooted.
func (f fencing) staleWriter(ctx context.Context) {
	t := f.t
	networkOn(ctx, t, f.Cluster)
	node, other := f.nodes(ctx)
	done := f.Step("a volume is written on " + node.Name)
	must(t, f.CreateClaim(ctx, "ledger", fencedClass, "ReadWriteOnce"))
	must(t, f.Run(ctx, Workload{Name: "writer", Claim: "ledger", Node: node.Name, Command: writerCommand}))
	_, err := f.WaitWorkload(ctx, "writer")
	must(t, err)
	f.waitLine(ctx, node, 0)
	f.waitRecorded(ctx, node)
	done()

	done = f.Step("the node is lost")
	must(t, node.Cut(ctx, Management))
	f.waitPhase(ctx, node, v1alpha1.NodeLost)
	done()

	done = f.Step("the volume is held")
	must(t, f.storage.Slow())
	// With NoExecute, Kubernetes would give up the node's instance manager too. Longhorn would then stop the volume's
	// replicas within seconds, and cut the stale writer off before the fence does.
	_, err = f.Kubectl(ctx, "", "taint", "nodes", node.Name, fence.OutOfServiceTaint+"=nodeshutdown:NoSchedule")
	must(t, err)
	f.waitPhase(ctx, node, v1alpha1.NodeFencing)
	f.waitWritten(ctx, node)
	f.isHeld(ctx, node, other)
	done()

	done = f.Step("the node is fenced")
	before := f.line(ctx, node)
	must(t, f.storage.Quick())
	f.waitPhase(ctx, node, v1alpha1.NodeFenced)
	after, bytes := f.line(ctx, node), f.bytes(node)
	done()

	done = f.Step("the stale writer goes on")
	f.waitLine(ctx, node, after+5)
	done()

	done = f.Step("the successor writes")
	_, err = f.Kubectl(ctx, "", "delete", "deployment", "writer", "--wait=false")
	must(t, err)
	must(t, f.Run(ctx, Workload{Name: "successor", Claim: "ledger", Node: other.Name}))
	_, err = f.WaitWorkload(ctx, "successor")
	must(t, err)
	lines := f.lines(ctx, "successor")
	t.Logf("the stale writer had written line %d before the fence and %d after it; the successor reads up to %d", before, after, len(lines))
	for i, line := range lines {
		if line != strconv.Itoa(i+1) {
			t.Fatalf("line %d is %q", i+1, line)
		}
	}
	if len(lines) < before || len(lines) > after {
		t.Errorf("the successor reads %d lines; the stale writer had written %d before the fence and %d after it", len(lines), before, after)
	}
	_, err = f.Shell(ctx, "successor", "echo successor >>/data/lines && sync")
	must(t, err)
	done()

	done = f.Step("the node comes back without a reboot")
	must(t, node.Mend(ctx, Management))
	must(t, node.WaitReady(ctx, time.Minute))
	f.waitReason(ctx, node, fence.ReasonNotRebooted)
	done()
	if got := f.bytes(node); got != bytes {
		t.Errorf("the storage link carried %d bytes after the fence", got-bytes)
	}

	done = f.Step("the node reboots")
	must(t, node.PowerOff())
	must(t, node.Boot(ctx))
	f.waitPhase(ctx, node, v1alpha1.NodeReturned)
	if got := f.bytes(node); got != 0 {
		t.Errorf("the storage link carried %d bytes of a rebooted node that is fenced", got)
	}
	done()

	done = f.Step("the node is unfenced")
	_, err = f.Kubectl(ctx, "", "taint", "nodes", node.Name, fence.OutOfServiceTaint+"-")
	must(t, err)
	f.waitPhase(ctx, node, v1alpha1.NodeHealthy)
	blocked, err := f.storage.Blocked()
	must(t, err)
	if len(blocked) != 0 {
		t.Errorf("%v are blocked", blocked)
	}
	done()

	if got, want := f.lines(ctx, "successor"), append(lines, "successor"); !slices.Equal(got, want) {
		t.Errorf("the volume has %d lines, want %d as before the node returned", len(got), len(want))
	}
}

// lastLine that the writer has written, as the writer's node sees the volume.
func lastLine(ctx context.Context, node *Node) (int, error) {
	out, err := node.Run(ctx, "sh", "-c", "tail -n 1 /var/lib/kubelet/pods/*/volumes/kubernetes.io~csi/*/mount/lines")
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(out))
}

func (f fencing) line(ctx context.Context, node *Node) int {
	f.t.Helper()
	number, err := lastLine(ctx, node)
	must(f.t, err)
	return number
}

// waitLine waits until the writer has written more than this line.
func (f fencing) waitLine(ctx context.Context, node *Node, number int) {
	f.t.Helper()
	must(f.t, eventually.Until(ctx, "the writer on "+node.Name, time.Minute, func() error {
		got, err := lastLine(ctx, node)
		if err == nil && got <= number {
			err = fmt.Errorf("its last line is %d", got)
		}
		return err
	}))
}

// lines of the file, as a workload reads them.
func (f fencing) lines(ctx context.Context, workload string) []string {
	f.t.Helper()
	out, err := f.Shell(ctx, workload, "cat /data/lines")
	must(f.t, err)
	return strings.Fields(out)
}

func (f fencing) bytes(node *Node) int64 {
	f.t.Helper()
	bytes, err := node.Bytes(Storage)
	must(f.t, err)
	return bytes
}

// waitWritten waits until the stale writer has written over the storage link.
func (f fencing) waitWritten(ctx context.Context, node *Node) {
	f.t.Helper()
	line, before := f.line(ctx, node), f.bytes(node)
	f.waitLine(ctx, node, line+5)
	// Each line is a block or more for each replica elsewhere.
	if got := f.bytes(node) - before; got < 5*4096 {
		f.t.Errorf("the storage link carried %d bytes while 5 lines were written", got)
	}
}

// isHeld tries to attach the volume elsewhere. Kubernetes does not, before it has given up the writer's pod; Longhorn
// would then cut the writer off, and not the fence.
func (f fencing) isHeld(ctx context.Context, node, other *Node) {
	f.t.Helper()
	var claim corev1.PersistentVolumeClaim
	must(f.t, f.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "ledger"}, &claim))
	want := "node " + node.Name + ", which is lost and not fenced"
	// The API server may ask the webhook's pod on the lost node first.
	must(f.t, eventually.Until(ctx, "the refusal of an attachment", time.Minute, func() error {
		err := f.Client.Create(ctx, &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"},
			Spec: storagev1.VolumeAttachmentSpec{
				Attacher: fencedDriver, NodeName: other.Name,
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &claim.Spec.VolumeName},
			},
		}, client.DryRunAll)
		switch {
		case err == nil:
			return eventually.Never(fmt.Errorf("the volume may be attached to %s", other.Name))
		case !strings.Contains(err.Error(), want):
			return fmt.Errorf("%w; want %q", err, want)
		}
		return nil
	}))
}

// waitRecord waits until the record of the node is as wanted: the oldest, while a boot that is over has one too.
func (f fencing) waitRecord(ctx context.Context, node *Node, what string, is func(v1alpha1.NodeFence) bool) {
	f.t.Helper()
	must(f.t, eventually.Until(ctx, "NodeFence "+node.Name+" "+what, 2*time.Minute, func() error {
		var records v1alpha1.NodeFenceList
		if err := f.Client.List(ctx, &records, client.MatchingLabels{fence.NodeLabel: node.Name}); err != nil {
			return err
		}
		if len(records.Items) == 0 {
			return errors.New("it has no record")
		}
		oldest := func(a, b v1alpha1.NodeFence) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) }
		if r := slices.MinFunc(records.Items, oldest); !is(r) {
			return fmt.Errorf("phase %s: %s: %s; addresses %q, volumes %v", r.Status.Phase, r.Status.Reason, r.Status.Message, r.Status.Addresses, r.Spec.Volumes)
		}
		return nil
	}))
}

func (f fencing) waitPhase(ctx context.Context, node *Node, phases ...v1alpha1.NodeFencePhase) {
	f.t.Helper()
	f.waitRecord(ctx, node, fmt.Sprint(phases), func(r v1alpha1.NodeFence) bool { return slices.Contains(phases, r.Status.Phase) })
}

func (f fencing) waitReason(ctx context.Context, node *Node, reason string) {
	f.t.Helper()
	f.waitRecord(ctx, node, reason, func(r v1alpha1.NodeFence) bool { return r.Status.Reason == reason })
}

// waitRecorded waits until the volume and the address of the healthy node are on record.
func (f fencing) waitRecorded(ctx context.Context, node *Node) {
	f.t.Helper()
	f.waitRecord(ctx, node, "with a volume and an address", func(r v1alpha1.NodeFence) bool {
		return r.Status.Phase == v1alpha1.NodeHealthy && r.Status.Addresses != "" && len(r.Spec.Volumes) == 1
	})
}
