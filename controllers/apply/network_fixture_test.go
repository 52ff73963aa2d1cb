package apply

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	netOne = objects.Network("one", "lhnet2")
	netTwo = objects.Network("two", "lhnet2")
)

// fixture is the controller over a fake API, with one node.
type fixture struct {
	*testkit.Bench
	r *Reconciler
	// cache answers the reads of the controller that need not be live.
	cache *fakeapi.Cache
	// before is called with each write of a name, like "delete Pod/csi"; an error replaces the write.
	before map[string]func(client.Object) error
}

// newFixture is a cluster with all components on the network, and every setting applied.
func newFixture(t *testing.T, on multus.Attachment, more ...client.Object) *fixture {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), nil, &v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{})
	f := &fixture{Bench: testkit.NewBench(t, api, networkAtRest(on)...), before: map[string]func(client.Object) error{}}
	f.restart()
	f.comeToRest()
	for _, o := range more {
		f.Must(f.Create(t.Context(), o))
	}
	f.restart()
	return f
}

// networkAtRest are the record, the setting, the DaemonSet and its pod.
func networkAtRest(on multus.Attachment) []client.Object {
	ds := &appsv1.DaemonSet{ObjectMeta: objects.Here(names.ClientDaemonSet), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}}
	ds.UID, ds.Annotations = "uid-plugin", map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}
	ds.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	all := []client.Object{objects.Record(on), ds, objects.Setting(catalog.EndpointNetworkForRWX, on.Network.String())}
	if on.IsZero() {
		return append(all, clientPod("1", ""))
	}
	ds.Spec.Template.Annotations = map[string]string{multus.NetworksAnnotation: on.String()}
	return append(all, clientPod("1", on.String()), networkObject(on))
}

// clientPod is the CSI plugin pod of a generation of the template, with an address on each network that it requests.
func clientPod(generation, networks string) *corev1.Pod {
	pod := objects.With(objects.Pod(names.Namespace, "csi", "node-1"), objects.ReadyPod, objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", names.ClientDaemonSet))
	pod.UID, pod.OwnerReferences[0].UID, pod.Labels = "", "uid-plugin", maps.Clone(names.ClientLabels)
	pod.Labels["pod-template-generation"], pod.Labels[appsv1.ControllerRevisionHashLabelKey] = generation, generation
	selections, _ := multus.ParseSelections(networks, names.Namespace)
	var reports []string
	for i, s := range selections {
		reports = append(reports, fmt.Sprintf(`{"name": %q, "interface": %q, "ips": ["192.168.0.%d"]}`, s.Network, s.Interface, i+3))
	}
	if reports != nil {
		pod.Annotations = map[string]string{multus.NetworksAnnotation: networks, multus.NetworkStatusAnnotation: "[" + strings.Join(reports, ", ") + "]"}
	}
	return pod
}

// networkObject is the NetworkAttachmentDefinition.
func networkObject(network multus.Attachment) client.Object {
	return objects.NetworkAttachmentDefinition(network.Namespace, network.Name)
}

// restart starts a new leader, with a cache that is up to date.
func (f *fixture) restart() {
	f.NewLeader()
	f.Client.Before = func(w fakeapi.Write) error {
		if do := f.before[w.String()]; do != nil {
			return do(w.Object)
		}
		return nil
	}
	f.cache = f.NewCache()
	f.r = &Reconciler{
		Names: names, Applies: true, Policy: rollout.Policy{Settle: time.Second}, Client: &kit.RefusalReporter{Client: f.Client, Events: f.Events}, API: f.API,
		Cached: reads.NewReader(names, f.cache, f.cache), Live: reads.NewReader(names, f.API, f.API),
		Events: f.Events, Clock: f.Clock, Log: f.Log, metrics: testkit.Value[*metrics](f)(newMetrics(f.Registry, names)),
	}
}

func (f *fixture) writes() int { return len(f.Client.Writes) }

func (f *fixture) reconcile() error {
	_, err := f.r.Reconcile(context.Background(), ctrl.Request{})
	return err
}

// comeToRest reconciles until nothing is written.
func (f *fixture) comeToRest() {
	f.Helper()
	for range 20 {
		before := f.writes()
		if f.Must(f.reconcile()); f.writes() == before {
			return
		}
	}
	f.Fatalf("the controller does not come to rest: %q", f.Client.Wrote())
}

// choose sets a network, which exists.
func (f *fixture) choose(network multus.Attachment) {
	f.Helper()
	f.set(network.Network.String())
	f.Must(client.IgnoreAlreadyExists(f.Create(f.Context(), networkObject(network))))
}

func (f *fixture) set(value string) {
	f.Helper()
	testkit.Change(f.Bench, names.Namespace, string(catalog.EndpointNetworkForRWX), func(s *v1alpha1.Setting) { s.Value = &value })
}

func (f *fixture) changeDaemonSet(change func(*appsv1.DaemonSet)) {
	f.Helper()
	testkit.Change(f.Bench, names.Namespace, names.ClientDaemonSet, change)
}

func (f *fixture) daemonSet() *appsv1.DaemonSet {
	return testkit.Get[appsv1.DaemonSet](f, f.API, names.Namespace, names.ClientDaemonSet)
}

func (f *fixture) pod() *corev1.Pod {
	return testkit.Get[corev1.Pod](f, f.API, names.Namespace, "csi")
}

func (f *fixture) service(name string) *corev1.Service {
	return testkit.Get[corev1.Service](f, f.API, names.Namespace, name)
}

func (f *fixture) rollout() *v1alpha1.NetworkRollout {
	return testkit.Get[v1alpha1.NetworkRollout](f, f.API, names.Namespace, longhorn.Name)
}

// attachedRWX is an RWX volume that is attached to the node.
func attachedRWX() *longhorn.Volume { return objects.LonghornVolume("v", "node-1", objects.RWX) }

// serviceOf is a Service as Longhorn creates it, with additions of users.
func serviceOf(volume string, changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{ObjectMeta: objects.Here(volume), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeClusterIP, Selector: map[string]string{names.VolumeLabel: volume},
		SessionAffinity: corev1.ServiceAffinityClientIP, PublishNotReadyAddresses: true,
		Ports: []corev1.ServicePort{{Name: "nfs", Protocol: corev1.ProtocolTCP, Port: 2049}},
	}}
	s.Labels = map[string]string{names.VolumeLabel: volume, "longhorn.io/managed-by": "longhorn-manager", "theirs": "x"}
	s.Annotations = map[string]string{"example.io/note": "keep me"}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: volume, UID: "uid-sm"}}
	return objects.With(s, changes...)
}

// headlessOn shapes a Service for a network, as Fairlead does.
func headlessOn(network multus.Attachment) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		s.Annotations[rwx.NetworkAnnotation] = network.String()
		s.Annotations[rwx.SelectorAnnotation] = fmt.Sprintf(`{%q:%q}`, names.VolumeLabel, s.Name)
		s.Spec.Selector = nil
	}
}

func labelled(s *corev1.Service) { s.Labels["new"] = "label" }

// wantService compares the Service in the API, without allocated values.
func (f *fixture) wantService(want *corev1.Service) {
	f.Helper()
	got, want := f.service(want.Name), want.DeepCopy()
	if got == nil {
		f.Fatalf("Service %s does not exist", want.Name)
	}
	for _, s := range []*corev1.Service{got, want} {
		s.UID, s.ResourceVersion, s.CreationTimestamp, s.TypeMeta = "", "", metav1.Time{}, metav1.TypeMeta{}
		if s.Spec.ClusterIP != corev1.ClusterIPNone {
			s.Spec.ClusterIP, s.Spec.ClusterIPs = "allocated", nil
		}
	}
	if !reflect.DeepEqual(got, want) {
		f.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

// wantApplied wants a finished roll-out.
func (f *fixture) wantApplied() {
	f.Helper()
	if s := f.rollout().Status; s.Phase != "Applied" || s.Replacing != "" || len(s.Blockers) != 0 {
		f.Fatalf("the roll-out is %+v", s)
	}
}
