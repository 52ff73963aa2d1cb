package main

import (
	"errors"
	"fmt"
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
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// nfsOf has healthy backends at the addresses, each recorded an hour ago.
func nfsOf(namespace, name, exposure string, addresses ...string) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	s.Spec.Exposure, s.Spec.Port = exposure, 2049
	for i, a := range addresses {
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: a})
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{
			Address: a + ":2049", Source: "static", Weight: 1, Zone: string(rune('a' + i)), Health: "Healthy", Since: ptr.To(before(time.Hour)),
		})
	}
	s.Status.Conditions = []metav1.Condition{{Type: v1alpha1.NFSReady, Status: metav1.ConditionTrue, Reason: "Serving"}}
	return s
}

func nfsNodeOf(name, zone string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
}

func nfsVolumeOf(name, driver, service string) *corev1.PersistentVolume {
	attributes := map[string]string{"share": "/exports"}
	if service != "" {
		attributes["service"] = service
	}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name, VolumeAttributes: attributes},
	}}}
}

func nfsAttachmentOf(pv, node, driver, address string) *storagev1.VolumeAttachment {
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + pv + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv},
	}}
	if address != "" {
		a.Status.AttachmentMetadata = map[string]string{csi.AddressKey(driver): address}
	}
	return a
}

// nfsWorld has a service of each exposure, a server that is down, and one that drains.
func nfsWorld() []client.Object {
	slots := nfsOf("storage", "files", "PerNodeStable", "10.0.0.1", "10.0.0.2", "10.0.0.3")
	slots.Status.Backends[2].Health, slots.Status.Backends[2].Since, slots.Status.Backends[2].LastError = "Down", ptr.To(before(5*time.Minute)), "dial: refused\x1b[2J"
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
	return newNFSReader(fencesClient(t, funcs, objects...), map[string]types.NamespacedName{
		csi.DefaultDriver: {}, volume.GKEDriver: {Namespace: "archive", Name: "vault"},
	})
}

func TestNFSServicesAreShown(t *testing.T) {
	reader := nfsReaderOf(t, interceptor.Funcs{}, nfsWorld()...)
	for _, test := range []struct {
		name, output string
		args         []string
	}{
		{"nfs.txt", outputTable, nil},
		{"nfs-slots.txt", outputTable, []string{"storage/files"}},
		{"nfs-per-node.txt", outputTable, []string{"archive/vault"}},
		{"nfs-stable.txt", outputTable, []string{"fast/one"}},
		{"nfs-slots.json", outputJSON, []string{"storage/files"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := showNFS(t.Context(), &out, reader, test.output, test.args, fencesNoon); err != nil {
				t.Fatal(err)
			}
			golden(t, test.name, out.String())
		})
	}
	if err := showNFS(t.Context(), &strings.Builder{}, reader, outputTable, []string{"storage/none"}, fencesNoon); !errors.Is(err, errNoNFSService) {
		t.Errorf("got %v", err)
	}
	if err := showNFS(t.Context(), &strings.Builder{}, reader, outputTable, []string{"files"}, fencesNoon); err == nil || !strings.Contains(err.Error(), "<namespace>/<name>") {
		t.Errorf("got %v", err)
	}
	var out strings.Builder
	if err := showNFS(t.Context(), &out, nfsReaderOf(t, interceptor.Funcs{}), outputTable, nil, fencesNoon); err != nil || out.String() != "No NFSServices.\n" {
		t.Errorf("got %v, %s", err, out.String())
	}
}

func TestNFSPlansAreShown(t *testing.T) {
	reader := nfsReaderOf(t, interceptor.Funcs{}, nfsWorld()...)
	for _, test := range []struct {
		name, output, service string
		changes               nfsChanges
		want                  error
	}{
		{"nfs-plan-slots.txt", outputTable, "storage/files", nfsChanges{add: []string{"10.0.0.4"}, drain: []string{"10.0.0.1"}, weight: []string{"10.0.0.4=2"}}, nil},
		{"nfs-plan-per-node.txt", outputTable, "archive/vault", nfsChanges{remove: []string{"10.1.0.1:2049"}, add: []string{"10.1.0.3:2050"}}, exitWaits},
		{"nfs-plan-per-node.json", outputJSON, "archive/vault", nfsChanges{remove: []string{"10.1.0.1:2049"}, add: []string{"10.1.0.3:2050"}}, exitWaits},
		{"nfs-plan-stable.txt", outputTable, "fast/one", nfsChanges{drain: []string{"fd00::1"}}, nil},
		{"nfs-plan-nothing.txt", outputTable, "fast/one", nfsChanges{add: []string{"[fd00::3]:2049"}}, nil},
		{"nfs-plan-stranded.txt", outputTable, "fast/one", nfsChanges{remove: []string{"fd00::1", "fd00::2"}}, exitWaits},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if err := showNFSPlan(t.Context(), &out, reader, test.output, []string{test.service}, test.changes); !errors.Is(err, test.want) {
				t.Fatalf("got %v", err)
			}
			golden(t, test.name, out.String())
		})
	}
	err := showNFSPlan(t.Context(), &strings.Builder{}, reader, outputTable, []string{"storage/files"}, nfsChanges{
		add: []string{"server-4"}, drain: []string{"10.0.0.9"}, weight: []string{"10.0.0.1", "10.0.0.1=2", "10.0.0.1=3", "10.0.0.2=0"},
	})
	for _, want := range []string{"add[0]: ", "drain[0]: ", "weight[0]: ", "weight[2]: ", "weight[10.0.0.2]: "} {
		if !errors.Is(err, errNFSChange) || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
}

func TestDriversComeFromTheConfiguration(t *testing.T) {
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nnfs: {drivers: [{name: nfs.fairlead.io}, {name: nfs.lb.csi.storage.gke.io, defaultService: archive/vault}]}"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(nfsDrivers(c)); got != "map[nfs.fairlead.io:/ nfs.lb.csi.storage.gke.io:archive/vault]" {
		t.Errorf("got %s", got)
	}
	if fallback, served := webhookNFS(c, nil).Live.Default(volume.GKEDriver); !served || fallback.Name != "vault" {
		t.Errorf("got %v, %v", fallback, served)
	}
}
