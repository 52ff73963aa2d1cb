package fencing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/config"
)

const (
	rbdDriver    = "rook-ceph.rbd.csi.ceph.com"
	cephfsDriver = "rook-ceph.cephfs.csi.ceph.com"
)

var fenceNoon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

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
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(w.objects...).WithInterceptorFuncs(w.funcs).
		WithStatusSubresource(&v1alpha1.NodeFence{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
	if err := errors.Join(cluster.IndexClaims(t.Context(), fenceIndexes{builder}), IndexHandles(t.Context(), fenceIndexes{builder})); err != nil {
		t.Fatal(err)
	}
	c := builder.Build()
	p := w.profile
	p.Name, p.Mode = "rook-ceph", config.Fence
	if p.Namespace == "" {
		p.Namespace = "rook-ceph"
	}
	return NewFenceReader(config.Fencing{Profiles: []config.FencingProfile{p}}, c, c, c)
}

func (w fenceWorld) facts(t *testing.T, node string) *FenceView {
	t.Helper()
	return onlyView(t, w.reader(t), node, fenceNoon)
}

// onlyView is that of a node whose name one machine has or had.
func onlyView(t *testing.T, r *FenceReader, node string, now time.Time) *FenceView {
	t.Helper()
	views, err := r.Views(t.Context(), node, now)
	if err != nil || len(views) != 1 {
		t.Fatalf("got %v, %v", views, err)
	}
	return views[0]
}

// written is a ledger in few words.
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

func fencedNodeObject(name string, addresses ...string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: corev1.NodeStatus{
			NodeInfo:   corev1.NodeSystemInfo{BootID: "boot-" + name, SystemUUID: "machine-" + name},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(fenceNoon.Add(-time.Hour))}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"}},
		},
	}
	for _, a := range addresses {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
	}
	return n
}

// ownedBy the DaemonSet of a driver's plugin.
func ownedBy(app string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: app, UID: types.UID("uid-" + app), Controller: ptr.To(true)}
}

// fencedClient is a client pod of a driver's plugin on a node.
func fencedClient(app, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: app + "-" + node, Labels: map[string]string{"app": app}, OwnerReferences: []metav1.OwnerReference{ownedBy(app)}},
		Spec:       corev1.PodSpec{NodeName: node, HostNetwork: true},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
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

func fencedPV(name, driver, clusterID string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:    &corev1.ObjectReference{Namespace: "default", Name: "claim-" + name},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle-" + name, VolumeAttributes: map[string]string{"clusterID": clusterID}}
	for _, c := range change {
		c(pv)
	}
	return pv
}

func withSecret(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Annotations = map[string]string{caches.DeletionSecretName: name, caches.DeletionSecretNamespace: "rook-ceph"}
	}
}

func attachedAt(pv, driver, node string, created time.Time) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "va-" + pv + "-" + node, CreationTimestamp: metav1.NewTime(created)},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(pv)}},
	}
}

func fencedStorageClass(name, driver, clusterID, secret string) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver,
		Parameters: map[string]string{"clusterID": clusterID, caches.ProvisionerSecretName: secret, caches.ProvisionerSecretNamespace: "rook-ceph"},
	}
}

func fenceClass(name, driver, clusterID string) *csiaddons.NetworkFenceClass {
	return &csiaddons.NetworkFenceClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       csiaddons.NetworkFenceClassSpec{Provisioner: driver, Parameters: map[string]string{"clusterID": clusterID}},
	}
}

func addonsNode(name, driver, nodeID, class string, cidrs ...string) *csiaddons.CSIAddonsNode {
	plugin := "csi-rbdplugin"
	if driver == cephfsDriver {
		plugin = "csi-cephfsplugin"
	}
	return &csiaddons.CSIAddonsNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: name, OwnerReferences: []metav1.OwnerReference{ownedBy(plugin)}},
		Spec:       csiaddons.CSIAddonsNodeSpec{Driver: csiaddons.CSIAddonsNodeDriver{Name: driver, NodeID: nodeID}},
		Status: csiaddons.CSIAddonsNodeStatus{State: "Connected", NetworkFenceClientStatus: []csiaddons.NetworkFenceClientStatus{
			{NetworkFenceClassName: class, ClientDetails: []csiaddons.ClientDetail{{ID: "fsid", CIDRs: cidrs}}},
		}},
	}
}

// notInstalledFuncs answer as an API server without csi-addons.
func notInstalledFuncs() interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		switch list.(type) {
		case *csiaddons.NetworkFenceList, *csiaddons.NetworkFenceClassList, *csiaddons.CSIAddonsNodeList:
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: csiaddons.GroupVersion.Group, Kind: "NetworkFence"}, SearchedVersions: []string{"v1alpha1"}}
		}
		return c.List(ctx, list, opts...)
	}}
}

func names(volumes []v1alpha1.HeldVolume) []string {
	var all []string
	for _, v := range volumes {
		all = append(all, v.PersistentVolume)
	}
	return all
}

// recordOf is the record of a node that holds volumes.
func recordOf(node string, volumes ...string) *v1alpha1.NodeFence {
	record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, v := range volumes {
		record.Status.Volumes = append(record.Status.Volumes, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbdDriver, ClusterID: "rook-ceph"})
	}
	return record
}
