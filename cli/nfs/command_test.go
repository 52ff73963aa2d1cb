package nfs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// nfsOf has healthy backends at the addresses, each recorded an hour ago.
func nfsOf(namespace, name, exposure string, addresses ...string) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Exposure, s.Spec.Port = exposure, 2049
	for i, a := range addresses {
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: a})
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{
			Address: a + ":2049", Source: "static", Weight: 1, Zone: string(rune('a' + i)), Health: "Healthy", Since: ptr.To(clitest.Before(time.Hour)),
		})
	}
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NFSReady, Status: metav1.ConditionTrue, Reason: "Serving"}}
	return s
}

func nfsNodeOf(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
}

func nfsVolumeOf(name, driver, service string) *corev1.PersistentVolume {
	return objects.Volume(name, driver, name, "claim-"+name, func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"share": "/exports"}
		if service != "" {
			pv.Spec.CSI.VolumeAttributes["service"] = service
		}
	})
}

func nfsAttachmentOf(pv, node, driver, address string) *storagev1.VolumeAttachment {
	return objects.Attachment(pv, node, driver, func(a *storagev1.VolumeAttachment) {
		if address != "" {
			a.Status.AttachmentMetadata = map[string]string{csi.AddressKey(driver): address}
		}
	})
}

// nfsWorld has a service of each exposure, a server that is down, and one that drains.
func nfsWorld() []client.Object {
	slots := nfsOf("storage", "files", "PerNodeStable", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	slots.Status.Backends[2].Health, slots.Status.Backends[2].Since, slots.Status.Backends[2].LastError = "Down", ptr.To(clitest.Before(5*time.Minute)), "dial: refused\x1b[2J"
	slots.Spec.Slots = ptr.To[int32](4)
	for i, backend := range []int{0, 1, 0, 1} {
		slots.Status.Slots = append(slots.Status.Slots, v1alpha1.NFSSlotStatus{Address: fmt.Sprintf("10.96.0.%d", i+1), Backend: slots.Status.Backends[backend].Address})
	}
	slots.Status.Conditions = append(slots.Status.Conditions, metav1.Condition{Type: v1alpha1.NFSBalanced, Status: metav1.ConditionTrue, Reason: "Balanced", Message: "no node waits for a move"})
	own := nfsOf("archive", "vault", "PerNode", "10.1.0.1", "10.1.0.2")
	own.Spec.Backends[1].Drain, own.Status.Backends[1].Drain = true, true
	one := nfsOf("fast", "one", "Stable", "fd00::1", "fd00::2")
	for i := range one.Status.Backends {
		one.Status.Backends[i].Address = fmt.Sprintf("[fd00::%d]:2049", i+1)
	}
	one.Status.Address, one.Status.Backend = "fd00:96::1", "[fd00::1]:2049"
	one.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NFSReady, Status: metav1.ConditionFalse, Reason: "Foreign", Message: "Service one does not belong to NFSService one"}}
	return []client.Object{
		slots, own, one,
		nfsNodeOf("node-1", "a"), nfsNodeOf("node-2", "b"), nfsNodeOf("node-3", ""), nfsNodeOf("node-4", "c"),
		nfsVolumeOf("pv-files", csi.DefaultDriver, "storage/files"), nfsVolumeOf("pv-more", csi.DefaultDriver, "storage/files"),
		nfsVolumeOf("pv-vault", volume.GKEDriver, ""), nfsVolumeOf("pv-one", csi.DefaultDriver, "fast/one"), nfsVolumeOf("pv-other", "nfs.csi.k8s.io", "storage/files"),
		nfsAttachmentOf("pv-files", "node-1", csi.DefaultDriver, "10.96.0.1"), nfsAttachmentOf("pv-more", "node-1", csi.DefaultDriver, "10.96.0.1"),
		nfsAttachmentOf("pv-files", "node-2", csi.DefaultDriver, "10.96.0.2"), nfsAttachmentOf("pv-files", "node-3", csi.DefaultDriver, "10.96.7.7"),
		nfsAttachmentOf("pv-files", "node-4", csi.DefaultDriver, ""),
		nfsAttachmentOf("pv-vault", "node-1", volume.GKEDriver, "10.1.0.1"), nfsAttachmentOf("pv-vault", "node-2", volume.GKEDriver, "10.1.0.2"),
		nfsAttachmentOf("pv-one", "node-1", csi.DefaultDriver, "fd00:96::1"), nfsAttachmentOf("pv-other", "node-4", "nfs.csi.k8s.io", "10.96.0.1"),
	}
}

func nfsReaderOf(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) nfsReader {
	t.Helper()
	return newNFSReader(clitest.Client(t, funcs, objects...), map[string]types.NamespacedName{
		csi.DefaultDriver: {}, volume.GKEDriver: {Namespace: "archive", Name: "vault"},
	})
}

func TestNFSServicesAreShown(t *testing.T) {
	reader := nfsReaderOf(t, interceptor.Funcs{}, nfsWorld()...)
	show := func(reader nfsReader, output string, want error, args ...string) string {
		return clitest.Output(t, want, func(out io.Writer) error { return showNFS(t.Context(), out, reader, output, args, clitest.Noon) })
	}
	clitest.Golden(t, "nfs.txt", show(reader, cli.OutputTable, nil))
	clitest.Golden(t, "nfs-slots.txt", show(reader, cli.OutputTable, nil, "storage/files"))
	clitest.Golden(t, "nfs-per-node.txt", show(reader, cli.OutputTable, nil, "archive/vault"))
	clitest.Golden(t, "nfs-stable.txt", show(reader, cli.OutputTable, nil, "fast/one"))
	clitest.Golden(t, "nfs-slots.json", show(reader, cli.OutputJSON, nil, "storage/files"))
	show(reader, cli.OutputTable, errNoNFSService, "storage/none")
	must.Equal(t, show(nfsReaderOf(t, interceptor.Funcs{}), cli.OutputTable, nil), "No NFSServices.\n")
	if err := showNFS(t.Context(), io.Discard, reader, cli.OutputTable, []string{"files"}, clitest.Noon); err == nil || !strings.Contains(err.Error(), "<namespace>/<name>") {
		t.Errorf("got %v", err)
	}
}

func TestNFSPlansAreShown(t *testing.T) {
	reader := nfsReaderOf(t, interceptor.Funcs{}, nfsWorld()...)
	replace := nfsChanges{remove: []string{"10.1.0.1:2049"}, add: []string{"10.1.0.3:2050"}}
	for _, test := range []struct {
		name, output, service string
		changes               nfsChanges
		want                  error
	}{
		{"nfs-plan-slots.txt", cli.OutputTable, "storage/files", nfsChanges{add: []string{"10.0.0.4"}, drain: []string{"10.0.0.1"}, weight: []string{"10.0.0.4=2"}}, nil},
		{"nfs-plan-per-node.txt", cli.OutputTable, "archive/vault", replace, cli.ExitWaits},
		{"nfs-plan-per-node.json", cli.OutputJSON, "archive/vault", replace, cli.ExitWaits},
		{"nfs-plan-stable.txt", cli.OutputTable, "fast/one", nfsChanges{drain: []string{"fd00::1"}}, nil},
		{"nfs-plan-nothing.txt", cli.OutputTable, "fast/one", nfsChanges{add: []string{"[fd00::3]:2049"}}, nil},
		{"nfs-plan-stranded.txt", cli.OutputTable, "fast/one", nfsChanges{remove: []string{"fd00::1", "fd00::2"}}, cli.ExitWaits},
	} {
		clitest.Golden(t, test.name, clitest.Output(t, test.want, func(out io.Writer) error {
			return showNFSPlan(t.Context(), out, reader, test.output, []string{test.service}, test.changes)
		}))
	}
}

func TestRefusedNFSChanges(t *testing.T) {
	reader := nfsReaderOf(t, interceptor.Funcs{}, nfsWorld()...)
	err := showNFSPlan(t.Context(), io.Discard, reader, cli.OutputTable, []string{"storage/files"}, nfsChanges{
		add: []string{"server-4"}, drain: []string{"10.0.0.9"}, weight: []string{"10.0.0.1", "10.0.0.1=2", "10.0.0.1=3", "10.0.0.2=0"},
	})
	for _, want := range []string{"add[0]: ", "drain[0]: ", "weight[0]: ", "weight[2]: ", "weight[10.0.0.2]: "} {
		must.Check(t, errors.Is(err, errNFSChange) && strings.Contains(err.Error(), want), "no %q in %v", want, err)
	}
}
