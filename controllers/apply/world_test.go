package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	class       = catalog.PriorityClass
	engineImage = "engine-image-ei-1"
)

var (
	names   = objects.Longhorn
	noon    = testkit.Noon
	errDown = errors.New("the API server is down")

	instanceManagers = []string{"im-node-1", "im-node-2"}
)

func newScheme() (*runtime.Scheme, error) {
	scheme, err := reads.NewScheme()
	if err == nil {
		scheme.AddKnownTypeWithName(reads.NetworkKind, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(reads.NetworkKind.GroupVersion().WithKind(reads.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	}
	return scheme, err
}

// world is the controller over a fake API. Longhorn and Kubernetes act when others is called.
type world struct {
	*testkit.Bench
	r *Reconciler
	// wrote are the controller's writes, like "patch v1.Deployment/csi-attacher" or "status v1alpha1.Setting/priority-class".
	wrote []string
	// before is called with the write of a name; an error replaces the write. after is called after each write.
	before map[string]func() error
	after  func()
	// meanwhile happens between the cached and the live read.
	meanwhile func()
	// networksFail answers lists of networks, unless it is nil.
	networksFail error
	// outdated is the class with which Longhorn builds pods, if Longhorn has missed a change.
	outdated *string
}

func setting(name catalog.Name, value string) *longhorn.Setting {
	return objects.LonghornSetting(name, value)
}

func attached(name string) *longhorn.Volume { return objects.LonghornVolume(name, "node-1") }

// engineOn is an engine that is about to run on a node.
func engineOn(node string) *longhorn.Engine {
	e := &longhorn.Engine{ObjectMeta: objects.Here("pvc-1-e-" + node)}
	e.Spec.NodeID, e.Spec.DesireState = node, longhorn.InstanceRunning
	return e
}

// inUse is an attached volume with engines on both nodes.
func inUse() []client.Object {
	return []client.Object{attached("pvc-1"), engineOn("node-1"), engineOn("node-2")}
}

// newWorld has two nodes with an instance manager each, the attacher, the engine image and the CSI plugin, as Longhorn
// builds them by default.
func newWorld(t *testing.T, more ...client.Object) *world {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(newScheme()), nil, &v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{})
	all := []client.Object{objects.Record(multus.Attachment{}), attacher(), daemonSet(engineImage, "engine-image"), daemonSet(names.ClientDaemonSet, "csi")}
	for _, name := range []string{"node-1", "node-2"} {
		node := objects.Node(name)
		node.Labels = map[string]string{"disk": "fast", "zone": ""}
		all = append(all, node, &longhorn.Node{ObjectMeta: objects.Here(name)},
			&longhorn.InstanceManager{ObjectMeta: objects.Here("im-" + name), Spec: longhorn.InstanceManagerSpec{NodeID: name, DataEngine: "v1"}})
	}
	for _, name := range []string{"low", "high", "higher", "theirs"} {
		all = append(all, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w := &world{Bench: testkit.NewBench(t, api, append(all, more...)...), before: map[string]func() error{}}
	w.others()
	w.others()
	w.restart()
	return w
}

// atRest is a world in which every value is applied.
func atRest(t *testing.T, more ...client.Object) *world {
	t.Helper()
	w := newWorld(t, more...)
	w.comeToRest()
	return w
}

// changing is a world at rest whose priority-class has just changed.
func changing(t *testing.T) *world {
	t.Helper()
	w := atRest(t, setting(class, ""))
	w.setSystem(class, "high")
	return w
}

func attacher() *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: objects.Here("csi-attacher"), Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](3)}}
	d.Labels, d.Generation = maps.Clone(names.ManagedLabels), 1
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "csi-attacher"}}
	return d
}

func daemonSet(name, container string) *appsv1.DaemonSet {
	d := &appsv1.DaemonSet{ObjectMeta: objects.Here(name)}
	d.Labels, d.Generation = maps.Clone(names.ManagedLabels), 1
	d.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: container, LivenessProbe: &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 4, FailureThreshold: 3}}}
	return d
}

// restart starts a new leader.
func (w *world) restart() {
	w.Helper()
	cache := w.Client.Reader
	w.NewLeader()
	w.wrote, w.Client.Reader = nil, cache
	w.Client.Before = func(write fakeapi.Write) error {
		verb, _, status := strings.Cut(write.Verb, "/")
		if status {
			verb = "status"
		}
		name := fmt.Sprintf("%s %s/%s", verb, strings.TrimPrefix(fmt.Sprintf("%T", write.Object), "*"), write.Object.GetName())
		if do := w.before[name]; do != nil {
			if err := do(); err != nil {
				return err
			}
		}
		w.wrote = append(w.wrote, name)
		return nil
	}
	w.Client.After = func(fakeapi.Write) error {
		if w.after != nil {
			w.after()
		}
		return nil
	}
	live := w.API.Client()
	live.Reading = func(o runtime.Object) error {
		if change := w.meanwhile; change != nil && meta.IsListType(o) {
			w.meanwhile = nil
			change()
		}
		return w.listNetworks(o)
	}
	w.Client.Reading = w.listNetworks
	w.r = &Reconciler{
		Names: names, Applies: true, Policy: rollout.Policy{Settle: time.Second}, Client: w.Client, API: w.API,
		Cached: reads.NewReader(names, w.Client, w.Client), Live: reads.NewReader(names, live, live),
		Events: w.Events, Clock: w.Clock, Log: w.Log, metrics: testkit.Value[*metrics](w)(newMetrics(w.Registry, names)),
	}
}

func (w *world) listNetworks(o runtime.Object) error {
	if _, networks := o.(*unstructured.UnstructuredList); networks {
		return w.networksFail
	}
	return nil
}

// once does something before a write, the first time. The result counts the writes.
func (w *world) once(write string, do func() error) *int {
	count := 0
	w.before[write] = func() error {
		if count++; count > 1 {
			return nil
		}
		return do()
	}
	return &count
}

// refuse forbids a write, as an admission webhook does.
func (w *world) refuse(write string) {
	w.before[write] = func() error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "objects"}, write, errors.New("a policy says no"))
	}
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
	return testkit.Value[ctrl.Result](w)(w.reconcile())
}

func (w *world) steps(n int) {
	w.Helper()
	for range n {
		w.step()
	}
}

// comeToRest lets everybody act until nothing is written.
func (w *world) comeToRest() {
	w.Helper()
	for range 80 {
		before := len(w.wrote)
		again := w.step().RequeueAfter
		if w.others() || len(w.wrote) > before {
			again = time.Second
		} else if again == 0 || again > statusEvery {
			return
		}
		w.Pass(again)
	}
	w.Fatalf("the controller does not come to rest: %q", w.wrote[max(0, len(w.wrote)-20):])
}

// goOn lets everybody act despite errors of the controller. It returns the first error.
func (w *world) goOn() (first error) {
	w.Helper()
	for range 40 {
		if _, err := w.reconcile(); first == nil {
			first = err
		}
		w.others()
		w.Pass(pauses[0])
	}
	return first
}

// stepUntilTemplates lets the controller write all templates, which others then roll.
func (w *world) stepUntilTemplates() {
	w.Helper()
	for w.daemonSet(names.ClientDaemonSet).Spec.Template.Spec.PriorityClassName != "high" {
		w.step()
	}
	w.others()
}

// crashAt lets the controller crash at its write number n, before or after it is done.
func (w *world) crashAt(n int, done bool) {
	w.Helper()
	w.restart()
	w.Client.CrashAt(n, done)
	for range 60 {
		_, err := w.reconcile()
		if w.Client.Crashed() {
			return
		}
		w.Must(err)
		w.others()
		w.Pass(time.Second)
	}
}

// others is the next step of Longhorn and Kubernetes. It reports whether there was a step.
func (w *world) others() (did bool) {
	w.Helper()
	var managers longhorn.InstanceManagerList
	var deployments appsv1.DeploymentList
	var daemonSets appsv1.DaemonSetList
	for _, list := range []client.ObjectList{&managers, &deployments, &daemonSets} {
		w.Must(w.List(context.Background(), list))
	}
	update := func(o client.Object) {
		w.Must(w.Status().Update(context.Background(), o))
		did = true
	}
	for i := range managers.Items {
		switch pod := w.pod(managers.Items[i].Name); {
		case pod == nil:
			w.create(w.managerPod(&managers.Items[i]))
			did = true
		case len(pod.Status.Conditions) == 0:
			objects.ReadyPod(pod)
			update(pod)
		}
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3}
			update(d)
		}
	}
	for i := range daemonSets.Items {
		if d := &daemonSets.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2, NumberReady: 2}
			update(d)
		}
	}
	return did
}

// managerPod is the pod of an instance manager, built with the values in effect.
func (w *world) managerPod(m *longhorn.InstanceManager) *corev1.Pod {
	pod := objects.Pod(names.Namespace, m.Name, m.Spec.NodeID)
	pod.UID, pod.Labels, pod.Spec.Containers = "", maps.Clone(names.InstanceManagerLabels), []corev1.Container{{}}
	if own := w.own(class); w.outdated != nil {
		pod.Spec.PriorityClassName = *w.outdated
	} else if own != nil && own.Value != nil {
		pod.Spec.PriorityClassName = *own.Value
	} else if s := w.system(class); s != nil {
		pod.Spec.PriorityClassName = s.Value
	}
	if s := w.system(catalog.TaintToleration); s != nil {
		pod.Spec.Tolerations = testkit.Value[[]corev1.Toleration](w)(catalog.ParseTolerations(s.Value))
		pod.Annotations = map[string]string{names.TolerationsAnnotation: string(testkit.Value[[]byte](w)(json.Marshal(pod.Spec.Tolerations)))}
	}
	return pod
}

// builtWith returns an error unless all components are built with the class, and Ready.
func (w *world) builtWith(class string) error {
	for _, name := range instanceManagers {
		if pod := w.pod(name); pod == nil || pod.Spec.PriorityClassName != class || !reads.Ready(pod) {
			return fmt.Errorf("pod %s is not built with %q and Ready", name, class)
		}
	}
	if d := w.deployment(); d.Spec.Template.Spec.PriorityClassName != class || d.Status.ObservedGeneration != d.Generation {
		return fmt.Errorf("the Deployment is not built with %q and Ready", class)
	}
	for _, name := range []string{engineImage, names.ClientDaemonSet} {
		if d := w.daemonSet(name); d.Spec.Template.Spec.PriorityClassName != class || d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("DaemonSet %s is not built with %q and Ready", name, class)
		}
	}
	return nil
}

// wantEnd wants the value built into all components, and reported as applied without an error.
func (w *world) wantEnd(value string) {
	w.Helper()
	w.Must(w.builtWith(value))
	if s := w.status(class); !s.Applied || *s.AppliedValue != value || s.LastError != "" || s.PendingSince != nil || !w.system(class).Status.Applied {
		w.Fatalf("Fairlead's setting reports %+v, Longhorn's %+v", s, w.system(class).Status)
	}
}

// checkEachWrite checks invariant 6 after each write: a value is reported as applied only if it is.
func (w *world) checkEachWrite(value string) {
	w.after = func() {
		status := w.status(class)
		if status.Applied && status.EffectiveValue == value || w.system(class).Status.Applied {
			err := w.builtWith(value)
			must.Check(w, err == nil, "after write %d %q is reported as applied, but %v", len(w.wrote), value, err)
		}
	}
}

// get returns nil if there is no object.
func get[T any, P interface {
	*T
	client.Object
}](w *world, name string) P {
	return testkit.Get[T, P](w, w.API, names.Namespace, name)
}

// change changes an object with its status, as a user does.
func change[T any, P interface {
	*T
	client.Object
}](w *world, name string, change func(P)) {
	w.Helper()
	testkit.Change(w.Bench, names.Namespace, name, change)
}

func (w *world) create(list ...client.Object) {
	w.Helper()
	for _, o := range list {
		w.Must(w.API.Create(context.Background(), o))
	}
}

func (w *world) remove(list ...client.Object) {
	w.Helper()
	for _, o := range list {
		w.Must(w.API.Delete(context.Background(), o))
	}
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

// set writes a value of Fairlead's setting; nil removes it.
func (w *world) set(name catalog.Name, value *string) {
	w.Helper()
	change(w, string(name), func(s *v1alpha1.Setting) { s.Value = value })
}

// setSystem changes Longhorn's setting. Longhorn finds its gate closed, and gives up after three retries.
func (w *world) setSystem(name catalog.Name, value string) {
	w.Helper()
	change(w, string(name), func(s *longhorn.Setting) { s.Value, s.Status.Applied = value, false })
}

// setSystemOpen changes Longhorn's setting, whose gate is open: Longhorn never writes its status.
func (w *world) setSystemOpen(name catalog.Name, value string) {
	w.Helper()
	change(w, string(name), func(s *longhorn.Setting) { s.Value = value })
}

// wantLonghornWrites compares the writes to Longhorn's settings.
func (w *world) wantLonghornWrites(want ...string) {
	w.Helper()
	got := slices.DeleteFunc(slices.Clone(w.wrote), func(text string) bool { return !strings.Contains(text, "longhorn.Setting/") })
	must.Check(w, slices.Equal(got, want), "wrote %q to Longhorn's settings, want %q", got, want)
}

// work are the writes since a number of writes, without settings.
func (w *world) work(since int) []string {
	return slices.DeleteFunc(slices.Clone(w.wrote[since:]), func(text string) bool { return strings.HasPrefix(text, "status ") || strings.Contains(text, "Setting") })
}

// wantMetric compares a series, by the name of its metric and the values of its labels.
func (w *world) wantMetric(want float64, name string, labels ...string) {
	w.Helper()
	value, found := testkit.Metric(w, w.Registry, name, labels...)
	must.Check(w, found && value == want, "%s of %q is %v (found: %t), want %v", name, labels, value, found, want)
}
