package rollout

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

const systemNamespace = "longhorn-system"

var onX = storage.VolumeAttachment(storage.Network{Namespace: "team-x", Name: "nfs"})

// rig is the reconciler over a cluster that is not there, with one node.
type rig struct {
	*Reconciler
	client.Client
	t     *testing.T
	clock *clocktesting.FakePassiveClock
}

func newRig(t *testing.T, objects ...client.Object) *rig {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(cluster.NetworkKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(cluster.NetworkKind.GroupVersion().WithKind(cluster.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}).Build()
	reader := cluster.NewReader(storage.Longhorn(), c, c)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{
		Profile: storage.Longhorn(), Applies: true, VolumeNetworks: true, Policy: rollout.Policy{Settle: rollout.DefaultSettle},
		Client: c, Cached: reader, Live: reader, Events: events.NewFakeRecorder(100), Clock: clock, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	if r.restarts, err = kit.RestartCounter(prometheus.NewRegistry(), r.Profile.Name); err != nil {
		t.Fatal(err)
	}
	return &rig{r, c, t, clock}
}

// run reconciles and does what Kubernetes and Multus would, until nothing changes for a while.
func (r *rig) run() {
	r.t.Helper()
	for range 20 {
		if _, err := r.Reconcile(r.t.Context(), ctrl.Request{}); err != nil {
			r.t.Fatal(err)
		}
		r.kubernetes()
	}
}

// kubernetes makes the client pod from the template where there is none.
func (r *rig) kubernetes() {
	ds := r.daemonSet()
	template := ds.Spec.Template.Annotations[storage.NetworksAnnotation]
	if ds.Annotations["made"] != template {
		ds.Annotations["made"] = template
		ds.Annotations[appsv1.DeprecatedTemplateGeneration] += "1"
		r.must(r.Update(r.t.Context(), ds))
	}
	selections, err := storage.ParseSelections(template, systemNamespace)
	r.must(err)
	status := "["
	for i, s := range selections {
		if i > 0 {
			status += ","
		}
		status += fmt.Sprintf(`{"name":%q,"interface":%q,"ips":["10.0.0.%d"]}`, s.Network, s.Interface, i+1)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: systemNamespace, Name: "csi-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "longhorn-csi-plugin", Controller: ptr.To(true)}},
			Labels:          map[string]string{"app": "longhorn-csi-plugin", "pod-template-generation": ds.Annotations[appsv1.DeprecatedTemplateGeneration]},
			Annotations:     map[string]string{storage.NetworksAnnotation: template, storage.NetworkStatusAnnotation: status + "]"},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if err := r.Create(r.t.Context(), pod); client.IgnoreAlreadyExists(err) != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) daemonSet() *appsv1.DaemonSet {
	r.t.Helper()
	var ds appsv1.DaemonSet
	r.must(r.Get(r.t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "longhorn-csi-plugin"}, &ds))
	return &ds
}

func (r *rig) service() *corev1.Service {
	r.t.Helper()
	var s corev1.Service
	r.must(r.Get(r.t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "pvc-a"}, &s))
	return &s
}

func (r *rig) status() v1alpha1.NetworkRolloutStatus {
	r.t.Helper()
	var rollout v1alpha1.NetworkRollout
	r.must(r.Get(r.t.Context(), cluster.RolloutKey(r.Profile), &rollout))
	return rollout.Status
}

// ask changes what the claim asks for.
func (r *rig) ask(annotations map[string]string) {
	r.t.Helper()
	var claim corev1.PersistentVolumeClaim
	r.must(r.Get(r.t.Context(), client.ObjectKey{Namespace: "default", Name: "data"}, &claim))
	claim.Annotations = annotations
	r.must(r.Update(r.t.Context(), &claim))
}

// oneVolume is a volume at rest, its claim and its Service, and the DaemonSet.
func oneVolume() []client.Object {
	labels := map[string]string{"longhorn.io/share-manager": "pvc-a"}
	return []client.Object{
		&v1alpha1.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: string(catalog.EndpointNetworkForRWX)}, Value: ptr.To("kube-system/storage-net")},
		&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "longhorn-csi-plugin", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}},
			Spec:       appsv1.DaemonSetSpec{UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}},
			Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 1},
		},
		&longhorn.Volume{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "pvc-a"},
			Spec:       longhorn.VolumeSpec{AccessMode: longhorn.AccessModeRWX}, Status: longhorn.VolumeStatus{State: longhorn.StateDetached},
		},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data", UID: "uid"}},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-a"},
			Spec: corev1.PersistentVolumeSpec{
				AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
				ClaimRef:               &corev1.ObjectReference{Namespace: "default", Name: "data", UID: "uid"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "driver.longhorn.io", VolumeHandle: "pvc-a"}},
			},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "pvc-a", Labels: labels},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.43.0.9", Selector: labels},
		},
	}
}

// definition is a NetworkAttachmentDefinition.
func definition(namespace, name string) *unstructured.Unstructured {
	network := &unstructured.Unstructured{}
	network.SetGroupVersionKind(cluster.NetworkKind)
	network.SetNamespace(namespace)
	network.SetName(name)
	return network
}

func TestVolumeMovesToItsNetworkAndBack(t *testing.T) {
	r := newRig(t, oneVolume()...)
	r.must(r.Create(t.Context(), definition("kube-system", "storage-net")))
	r.run()
	r.ask(map[string]string{storage.VolumeNetworkAnnotation: "team-x/nfs", storage.VolumeAddressesAnnotation: "10.0.0.9/24"})
	r.run()
	if s := r.status(); s.Phase != "Waiting" || len(s.Blockers) != 1 || s.Blockers[0].Kind != "Network" || len(s.Clients.VolumeNetworks) != 0 {
		t.Fatalf("a network that does not exist: %+v", s)
	}
	r.must(r.Create(t.Context(), definition("team-x", "nfs")))
	r.run()
	const common = `{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}`
	want := `[` + common + `, {"namespace": "team-x", "name": "nfs", "interface": "` + onX.Interface + `"}]`
	if got := r.daemonSet().Spec.Template.Annotations[storage.NetworksAnnotation]; got != want {
		t.Errorf("the template asks for %s, want %s", got, want)
	}
	if got := r.daemonSet().Spec.UpdateStrategy.Type; got != appsv1.RollingUpdateDaemonSetStrategyType {
		t.Errorf("the update strategy is %s", got)
	}
	if s := r.service(); s.Spec.ClusterIP != "None" || s.Annotations[storage.NetworkAnnotation] != onX.String() || s.Annotations[storage.AddressesAnnotation] != "10.0.0.9/24" {
		t.Errorf("the Service is %+v", s)
	}
	if s := r.status(); s.Phase != "Applied" || s.Servers.VolumeNetworks[0] != onX.String() || len(s.Blockers) != 0 {
		t.Errorf("the roll-out is %+v", s)
	}

	r.ask(map[string]string{storage.VolumeAddressesAnnotation: "10.0.0.9/24"})
	r.run()
	if s := r.service(); s.Annotations[storage.NetworkAnnotation] != "kube-system/storage-net@lhnet2" || s.Annotations[storage.AddressesAnnotation] != "10.0.0.9/24" {
		t.Errorf("back: the Service is %+v", s)
	}
	if s := r.status(); s.Phase != "Waiting" || len(s.Servers.VolumeNetworks) != 0 || len(s.Clients.VolumeNetworks) != 1 {
		t.Errorf("clients leave before Services have settled: %+v", s)
	}
	r.clock.SetTime(r.clock.Now().Add(rollout.DefaultSettle))
	r.run()
	if s := r.status(); s.Phase != "Applied" || len(s.Clients.VolumeNetworks) != 0 {
		t.Errorf("the roll-out is %+v", s)
	}
	if got := r.daemonSet().Spec.Template.Annotations[storage.NetworksAnnotation]; got != "["+common+"]" {
		t.Errorf("the template asks for %s", got)
	}
}

// While everything is at rest, nothing else depends on whether the network is there.
func TestDeletedCommonNetworkIsReported(t *testing.T) {
	r := newRig(t, oneVolume()...)
	r.must(r.Create(t.Context(), definition("kube-system", "storage-net")))
	r.run()
	if s := r.status(); s.Phase != "Applied" {
		t.Fatalf("at rest: %+v", s)
	}
	r.must(r.Delete(t.Context(), definition("kube-system", "storage-net")))
	r.run()
	const want = "NetworkAttachmentDefinition kube-system/storage-net was deleted: CSI plugin pods, and the server pods of RWX volumes, do not start again without it: create it again"
	if s := r.status(); s.Phase != "Waiting" || len(s.Blockers) != 1 || s.Blockers[0].Message != want || s.Message != "RWX volumes are on kube-system/storage-net; "+want {
		t.Errorf("deleted: %+v", s)
	}
	if result, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || result.RequeueAfter != 0 {
		t.Errorf("its creation is an event, and yet: %+v, %v", result, err)
	}
	r.must(r.Create(t.Context(), definition("kube-system", "storage-net")))
	r.run()
	if s := r.status(); s.Phase != "Applied" || len(s.Blockers) != 0 {
		t.Errorf("created again: %+v", s)
	}
}

// Nothing is asked of Multus when a network goes: pods that run keep it.
func TestDeletedVolumeNetworkIsReported(t *testing.T) {
	r := newRig(t, oneVolume()...)
	r.must(r.Create(t.Context(), definition("kube-system", "storage-net")))
	r.must(r.Create(t.Context(), definition("team-x", "nfs")))
	r.run()
	r.ask(map[string]string{storage.VolumeNetworkAnnotation: "team-x/nfs"})
	r.run()
	if s := r.status(); s.Phase != "Applied" || len(s.Servers.VolumeNetworks) != 1 {
		t.Fatalf("joined: %+v", s)
	}
	r.must(r.Delete(t.Context(), definition("team-x", "nfs")))
	r.run()
	const want = "NetworkAttachmentDefinition team-x/nfs was deleted: CSI plugin pods, and the server pods of pvc-a, do not start again without it: create it again"
	if s := r.status(); s.Phase != "Waiting" || len(s.Blockers) != 1 || s.Blockers[0].Message != want || !strings.Contains(s.Message, want) {
		t.Errorf("deleted: %+v", s)
	}
	r.must(r.Create(t.Context(), definition("team-x", "nfs")))
	r.run()
	if s := r.status(); s.Phase != "Applied" || len(s.Blockers) != 0 {
		t.Errorf("created again: %+v", s)
	}
}

func TestOnlyRequestsWakeTheRollout(t *testing.T) {
	asks := map[string]string{storage.VolumeNetworkAnnotation: "team-x/nfs"}
	claim := func(annotations map[string]string) client.Object {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	if p := kit.AnnotationsChanged(storage.AsksForNetwork); p.Create(event.CreateEvent{Object: claim(nil)}) || !p.Create(event.CreateEvent{Object: claim(asks)}) ||
		p.Update(event.UpdateEvent{ObjectOld: claim(asks), ObjectNew: claim(asks)}) || !p.Update(event.UpdateEvent{ObjectOld: claim(asks), ObjectNew: claim(nil)}) ||
		p.Delete(event.DeleteEvent{Object: claim(nil)}) || !p.Delete(event.DeleteEvent{Object: claim(asks)}) {
		t.Error("a claim is an event when it asks, or no longer does, and else not")
	}
	free, bound := &corev1.PersistentVolume{}, &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Name: "data"}}}
	if p := kit.Updated(isRebound); !p.Create(event.CreateEvent{Object: bound}) || p.Update(event.UpdateEvent{ObjectOld: bound, ObjectNew: bound.DeepCopy()}) ||
		!p.Update(event.UpdateEvent{ObjectOld: free, ObjectNew: bound}) || p.Update(event.UpdateEvent{ObjectOld: &storagev1.StorageClass{}, ObjectNew: &storagev1.StorageClass{}}) {
		t.Error("a PersistentVolume is an event when it comes, goes or is bound to another claim")
	}
}
