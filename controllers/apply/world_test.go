package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	profile = objects.Longhorn
	noon    = testkit.Noon
	errDied = fakeapi.ErrCrashed
)

func newScheme() (*runtime.Scheme, error) {
	scheme, err := cluster.NewScheme()
	if err == nil {
		scheme.AddKnownTypeWithName(cluster.NetworkKind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(cluster.NetworkKind.GroupVersion().WithKind(cluster.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme, err
}

// world is the controller over a fake API, with Longhorn and Kubernetes beside
// it, which do their part when others is called.
type world struct {
	*testkit.Bench
	r *Reconciler
	// wrote is what the controller wrote.
	wrote []string
	// fail answers a write in its place, unless it returns nil; watch is called after each write.
	fail  func(verb string, o client.Object) error
	watch func()
	// meanwhile happens between the cached and the live read.
	meanwhile func()
	// networkLists counts lists of networks; networksFail is an answer in place of a list, or nil.
	networkLists int
	networksFail error
	// stale is the class with which Longhorn builds pods, if Longhorn has missed a change.
	stale *string
}

var at = objects.Here

func setting(name catalog.Name, value string) *longhorn.Setting {
	return objects.LonghornSetting(name, value)
}

// ownSetting is Fairlead's; without a value there.
func ownSetting(name catalog.Name, value string) *v1alpha1.Setting {
	return objects.Setting(name, value)
}

func attached(name string) *longhorn.Volume { return objects.LonghornVolume(name, "node-1") }

// newWorld has two nodes with an instance manager each, the attacher, the
// engine image and the CSI plugin; all as Longhorn makes them by default.
func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(newScheme()), nil, &v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{})
	all := []client.Object{objects.Record(storage.Attachment{}), attacher(), daemonSet("engine-image-ei-1", "engine-image"), daemonSet(profile.ClientDaemonSet, "csi")}
	for _, name := range []string{"node-1", "node-2"} {
		node := objects.Node(name)
		node.Labels = map[string]string{"disk": "fast", "zone": ""}
		all = append(all, node, &longhorn.Node{ObjectMeta: at(name)},
			&longhorn.InstanceManager{ObjectMeta: at("im-" + name), Spec: longhorn.InstanceManagerSpec{NodeID: name, DataEngine: "v1"}})
	}
	for _, name := range []string{"low", "high", "higher", "theirs"} {
		all = append(all, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w := &world{Bench: testkit.NewBench(t, api, append(all, more...)...)}
	w.others()
	w.others()
	w.restart()
	return w
}

func attacher() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: at("csi-attacher"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}}
	d.Labels, d.Generation = maps.Clone(profile.ManagedLabels), 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "csi-attacher"}}
	return d
}

func daemonSet(name, container string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: at(name)}
	d.Labels, d.Generation = maps.Clone(profile.ManagedLabels), 1
	d.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container, LivenessProbe: &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 4, FailureThreshold: 3}}}
	return d
}

// restart is a new leader.
func (w *world) restart() {
	w.Helper()
	reader := w.reader()
	w.NewLeader()
	w.wrote, w.Client.Reader = nil, reader
	w.Client.Before = func(write fakeapi.Write) error {
		verb, _, status := strings.Cut(write.Verb, "/")
		if status {
			verb = "status"
		}
		if w.fail != nil {
			if err := w.fail(verb, write.Object); err != nil {
				return err
			}
		}
		w.wrote = append(w.wrote, fmt.Sprintf("%s %s/%s", verb, strings.TrimPrefix(fmt.Sprintf("%T", write.Object), "*"), write.Object.GetName()))
		return nil
	}
	w.Client.After = func(fakeapi.Write) error {
		if w.watch != nil {
			w.watch()
		}
		return nil
	}
	live := w.API.Client()
	live.Reading = func(o runtime.Object) error {
		if change := w.meanwhile; change != nil && meta.IsListType(o) {
			w.meanwhile = nil
			change()
		}
		if _, networks := o.(*metav1.PartialObjectMetadataList); networks {
			w.networkLists++
			return w.networksFail
		}
		return nil
	}
	w.r = &Reconciler{
		Profile: profile, Applies: true, Policy: rollout.Policy{Settle: time.Second}, Client: w.Client, API: w.API,
		Cached: cluster.NewReader(profile, w.Client, w.Client), Live: cluster.NewReader(profile, live, live),
		Events: w.Events, Clock: w.Clock, Log: w.Log, metrics: testkit.Value[*metrics](w)(newMetrics(w.Registry, profile.Name)),
	}
}

func (w *world) reader() client.Reader {
	if w.Client == nil {
		return nil
	}
	return w.Client.Reader
}

// freeze makes the controller's cache stale from now on.
func (w *world) freeze() {
	w.Helper()
	cache := w.NewCache()
	w.Must(cache.Freeze(w.Context(), nil,
		&v1alpha1.NetworkRolloutList{}, &v1alpha1.SettingList{}, &longhorn.SettingList{}, &longhorn.VolumeList{}, &longhorn.NodeList{},
		&longhorn.InstanceManagerList{}, &corev1.NodeList{}, &corev1.PodList{}, &appsv1.DaemonSetList{}, &appsv1.DeploymentList{},
		&schedulingv1.PriorityClassList{}))
	w.Client.Reader = cache
}

func (w *world) reconcile() (ctrl.Result, error) {
	return w.r.Reconcile(context.Background(), ctrl.Request{})
}

// step is one look of the controller.
func (w *world) step() ctrl.Result {
	w.Helper()
	result, err := w.reconcile()
	w.Must(err)
	return result
}

// comeToRest has all do their part until nothing is written any more.
func (w *world) comeToRest() {
	w.Helper()
	for range 80 {
		before := len(w.wrote)
		again := w.step().RequeueAfter
		if !w.others() && len(w.wrote) == before {
			if again == 0 || again > statusEvery {
				return
			}
			w.Clock.SetTime(w.Clock.Now().Add(again))
			continue
		}
		w.Clock.SetTime(w.Clock.Now().Add(time.Second))
	}
	w.Fatalf("it does not come to rest: %q", w.wrote[max(0, len(w.wrote)-20):])
}

// others do the next thing that Longhorn and Kubernetes do; false where there is none.
func (w *world) others() (did bool) {
	w.Helper()
	ctx := context.Background()
	var managers longhorn.InstanceManagerList
	w.Must(w.API.List(ctx, &managers))
	for i := range managers.Items {
		m := &managers.Items[i]
		switch pod := w.pod(m.Name); {
		case pod == nil:
			w.Must(w.API.Create(ctx, w.managerPod(m)))
			did = true
		case len(pod.Status.Conditions) == 0:
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.Must(w.API.Status().Update(ctx, pod))
			did = true
		}
	}
	var deployments appsv1.DeploymentList
	w.Must(w.API.List(ctx, &deployments))
	for i := range deployments.Items {
		if d := &deployments.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3}
			w.Must(w.API.Status().Update(ctx, d))
			did = true
		}
	}
	var daemonSets appsv1.DaemonSetList
	w.Must(w.API.List(ctx, &daemonSets))
	for i := range daemonSets.Items {
		if d := &daemonSets.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2, NumberReady: 2}
			w.Must(w.API.Status().Update(ctx, d))
			did = true
		}
	}
	return did
}

func (w *world) managerPod(m *longhorn.InstanceManager) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: at(m.Name), Spec: corev1.PodSpec{NodeName: m.Spec.NodeID, PriorityClassName: w.class(), Containers: []corev1.Container{{}}}}
	if w.stale != nil {
		pod.Spec.PriorityClassName = *w.stale
	}
	pod.Labels = maps.Clone(profile.InstanceManagerLabels)
	if s := w.system(catalog.TaintToleration); s != nil {
		list, err := catalog.ParseTolerations(s.Value)
		w.Must(err)
		text, err := json.Marshal(list)
		w.Must(err)
		pod.Spec.Tolerations, pod.Annotations = list, map[string]string{profile.TolerationsAnnotation: string(text)}
	}
	return pod
}

// class is the value of priority-class that is in force.
func (w *world) class() string {
	if own := w.own(catalog.PriorityClass); own != nil && own.Value != nil {
		return *own.Value
	}
	if s := w.system(catalog.PriorityClass); s != nil {
		return s.Value
	}
	return ""
}

// allOf reports whether everything is built with the class, and Ready.
func (w *world) allOf(class string) error {
	for _, name := range []string{"im-node-1", "im-node-2"} {
		if pod := w.pod(name); pod == nil || pod.Spec.PriorityClassName != class || !cluster.Ready(pod) {
			return fmt.Errorf("pod %s is not of %q and Ready", name, class)
		}
	}
	if d := w.deployment(); d.Spec.Template.Spec.PriorityClassName != class || d.Status.ObservedGeneration != d.Generation {
		return fmt.Errorf("the Deployment is not of %q and Ready", class)
	}
	for _, name := range []string{"engine-image-ei-1", profile.ClientDaemonSet} {
		if d := w.daemonSet(name); d.Spec.Template.Spec.PriorityClassName != class || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("DaemonSet %s is not of %q and Ready", name, class)
		}
	}
	return nil
}

// mustBeAsTold is invariant 6: what is called applied is built with the value and Ready.
func (w *world) mustBeAsTold(value string) {
	w.Helper()
	status, system := w.status(class), w.system(class)
	if status.Applied && status.EffectiveValue == value || system.Status.Applied {
		if err := w.allOf(value); err != nil {
			w.Errorf("after write %d %q is called applied, but %v", len(w.wrote), value, err)
		}
	}
}

// get returns nil where there is none.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	w.Helper()
	return testkit.Get[T, P](w, w.API, profile.Namespace, name)
}

func (w *world) pod(name string) *corev1.Pod             { return get[corev1.Pod](w, name) }
func (w *world) deployment() *appsv1.Deployment          { return get[appsv1.Deployment](w, "csi-attacher") }
func (w *world) daemonSet(name string) *appsv1.DaemonSet { return get[appsv1.DaemonSet](w, name) }
func (w *world) own(name catalog.Name) *v1alpha1.Setting {
	return get[v1alpha1.Setting](w, string(name))
}
func (w *world) system(name catalog.Name) *longhorn.Setting {
	return get[longhorn.Setting](w, string(name))
}
func (w *world) status(name catalog.Name) v1alpha1.SettingStatus { return w.own(name).Status }

func (w *world) manager(name string) *longhorn.InstanceManager {
	return get[longhorn.InstanceManager](w, name)
}

// set writes a value, as a user does.
func (w *world) set(name catalog.Name, value string) {
	w.Helper()
	s := w.own(name)
	s.Value = &value
	w.Must(w.API.Update(context.Background(), s))
}

// setSystem changes Longhorn's setting. Longhorn finds its gate closed, and gives up after three retries.
func (w *world) setSystem(name catalog.Name, value string) {
	w.Helper()
	w.setSystemOpen(name, value)
	s := w.system(name)
	s.Status.Applied = false
	w.Must(w.API.Status().Update(context.Background(), s))
}

// setSystemOpen changes Longhorn's setting, whose gate is open: Longhorn never writes its status.
func (w *world) setSystemOpen(name catalog.Name, value string) {
	w.Helper()
	s := w.system(name)
	s.Value = value
	w.Must(w.API.Update(context.Background(), s))
}

// wroteToLonghorn lists the controller's writes to Longhorn's settings.
func (w *world) wroteToLonghorn() []string {
	return slices.DeleteFunc(slices.Clone(w.wrote), func(text string) bool { return !strings.Contains(text, "longhorn.Setting/") })
}

// metric is the value of a series, by the name of its metric and the values of its labels; -1 is none.
func (w *world) metric(name string, labels ...string) float64 {
	w.Helper()
	if value, found := testkit.Metric(w, w.Registry, name, labels...); found {
		return value
	}
	return -1
}
