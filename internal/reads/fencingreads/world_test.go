package fencingreads

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	rbd    = objects.RBD
	cephfs = objects.CephFS
)

var fenceNoon = testkit.Noon

type fenceIndexes struct{ *fake.ClientBuilder }

func (i fenceIndexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

// fenceWorld is a cluster of node-1, of objects, and how its storage is configured.
type fenceWorld struct {
	profile config.FencingProfile
	objects []client.Object
	funcs   interceptor.Funcs
}

func (w fenceWorld) reader(t *testing.T) *FenceReader {
	t.Helper()
	builder := fake.NewClientBuilder().WithScheme(testkit.Value[*runtime.Scheme](t)(reads.NewScheme())).WithObjects(w.objects...).WithInterceptorFuncs(w.funcs).
		WithStatusSubresource(&v1alpha1.NodeFence{})
	byNode := fakeapi.PodsByNode()
	builder.WithIndex(byNode.Object, byNode.Field, byNode.Keys)
	builder.WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} })
	testkit.Must(t, IndexFencing(t.Context(), fenceIndexes{builder}))
	c, p := builder.Build(), w.profile
	p.Name, p.Mode, p.Namespace = "rook-ceph", config.Fence, cmp.Or(p.Namespace, "rook-ceph")
	return readerOf(t, config.Fencing{Profiles: []config.FencingProfile{p}}, c, c)
}

// readerOf reads objects as a cache, which shows the same volumes.
func readerOf(t *testing.T, c config.Fencing, objects, live client.Reader) *FenceReader {
	t.Helper()
	unknown := func(context.Context) string { return "" }
	return NewFenceReader(c, objects, live, unknown, testkit.Value[*Holdings](t)(ListedHoldings(t.Context(), objects, c.Protects)))
}

// now is a reader for decisions.
func now(t *testing.T, r *FenceReader) *FenceReader {
	t.Helper()
	return testkit.Value[*FenceReader](t)(r.Live(t.Context()))
}

func (w fenceWorld) facts(t *testing.T, node string) *FenceView {
	t.Helper()
	return onlyView(t, w.reader(t), node, fenceNoon)
}

// onlyView is the view of a node name with one boot.
func onlyView(t *testing.T, r *FenceReader, node string, now time.Time) *FenceView {
	t.Helper()
	views, err := r.Views(t.Context(), node, now, nil)
	must.True(t, err == nil && len(views) == 1, "got %v, %v", views, err)
	return views[0]
}

// written is a ledger in short form.
func written(ledger []v1alpha1.StorageIdentity) []string {
	var lines []string
	for _, i := range ledger {
		var addresses []string
		for _, a := range i.Addresses {
			addresses = append(addresses, a.Source+" "+a.CIDR)
		}
		line := strings.TrimSuffix(i.Driver, ".csi.ceph.com") + "/" + i.ClusterID + ": " + strings.Join(addresses, ", ")
		if i.ClientID != "" {
			line += " id " + i.ClientID
		}
		if i.Class != "" {
			line += " class " + i.Class
		}
		if i.Secret != nil {
			line += " secret " + i.Secret.Namespace + "/" + i.Secret.Name
		}
		if i.Problem != "" {
			line += " problem " + i.Problem
		}
		lines = append(lines, strings.TrimPrefix(line, "rook-ceph."))
	}
	return lines
}

// nodeAt is a node with internal addresses, and an external one.
func nodeAt(name string, addresses ...string) *corev1.Node {
	n := objects.Node(name, objects.Readiness(corev1.ConditionTrue, fenceNoon.Add(-time.Hour)))
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"}}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// onNetwork moves a pod off the host network, on Multus' networks given as
// <network>@<interface>=<address>.
func onNetwork(podIP string, interfaces ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.HostNetwork = false
		pod.Status.PodIPs = []corev1.PodIP{{IP: podIP}}
		reported := []string{fmt.Sprintf(`{"name":"cbr0","interface":"eth0","ips":[%q],"default":true}`, podIP)}
		for _, text := range interfaces {
			where, ip, _ := strings.Cut(text, "=")
			network, iface, _ := strings.Cut(where, "@")
			reported = append(reported, fmt.Sprintf(`{"name":%q,"interface":%q,"ips":[%q]}`, network, iface, ip))
		}
		pod.Annotations = map[string]string{"k8s.v1.cni.cncf.io/network-status": "[" + strings.Join(reported, ",") + "]"}
	}
}

func withSecret(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Annotations = map[string]string{caches.DeletionSecretName: name, caches.DeletionSecretNamespace: "rook-ceph"}
	}
}

func attachedAt(pv, driver, node string, created time.Time) *storagev1.VolumeAttachment {
	return objects.Attachment(pv, node, driver, objects.CreatedAt[*storagev1.VolumeAttachment](metav1.NewTime(created)))
}

// podWith claims on node-1.
func podWith(name string, claims ...string) *corev1.Pod {
	return objects.Pod("default", name, "node-1", claims...)
}

// notInstalledFuncs answers like an API server without csi-addons.
func notInstalledFuncs() interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		switch list.(type) {
		case *csiaddons.NetworkFenceList, *csiaddons.NetworkFenceClassList, *csiaddons.CSIAddonsNodeList:
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: csiaddons.GroupVersion.Group, Kind: "NetworkFence"}, SearchedVersions: []string{"v1alpha1"}}
		}
		return c.List(ctx, list, opts...)
	}}
}

// recordOf is the record of the boot of objects.Node, which holds volumes: "pv-a" of handle "a", or "pv-a=HANDLE".
func recordOf(node string, volumes ...string) *v1alpha1.NodeFence {
	record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: node}}
	record.Spec.NodeName, record.Spec.Boot = node, v1alpha1.Boot{SystemUUID: "machine-" + node, BootID: "boot-" + node}
	for _, v := range volumes {
		name, handle, given := strings.Cut(v, "=")
		if !given {
			handle = strings.TrimPrefix(name, "pv-")
		}
		record.Spec.Volumes = append(record.Spec.Volumes, v1alpha1.HeldVolume{PersistentVolume: name, Driver: rbd, VolumeHandle: handle, ClusterID: "rook-ceph"})
	}
	return record
}

// lost makes a record that of a lost boot.
func lost(record *v1alpha1.NodeFence) *v1alpha1.NodeFence {
	record.Labels = map[string]string{fence.IncidentLabel: "true"}
	record.Spec.LostSince = ptr.To(metav1.NewTime(fenceNoon))
	return record
}
