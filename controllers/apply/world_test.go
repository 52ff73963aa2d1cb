package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	profile = storage.Longhorn()
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errDied = errors.New("the controller has died")

	newScheme = sync.OnceValues(func() (*runtime.Scheme, error) {
		scheme, err := cluster.NewScheme()
		if err == nil {
			scheme.AddKnownTypeWithName(cluster.NetworkKind, &unstructured.Unstructured{})
			scheme.AddKnownTypeWithName(cluster.NetworkKind.GroupVersion().WithKind(cluster.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
		}
		return scheme, err
	})
)

// world is the controller over a fake API, with Longhorn and Kubernetes beside
// it, which do their part when others is called.
type world struct {
	*testing.T
	store    client.WithWatch
	r        *Reconciler
	clock    *clocktesting.FakePassiveClock
	registry *prometheus.Registry
	events   []string
	uids     int
	// wrote is what the controller wrote; it crashes at number dies, which is done or not.
	wrote      []string
	dies       int
	done, dead bool
	// fail is an answer in place of a write, or nil; watch sees each after it was made.
	fail  func(verb string, o client.Object) error
	watch func()
	// cache is what the controller's shows, if that is behind.
	cache client.Reader
	// meanwhile happens between the cached and the live read.
	meanwhile func()
	// networkLists counts lists of networks; networksFail is an answer in place of one, or nil.
	networkLists int
	networksFail error
	// stale is the class that Longhorn builds pods with, if it has not heard of a change.
	stale *string
}

func at(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: profile.Namespace, Name: name}
}

func setting(name catalog.Name, value string) *longhorn.Setting {
	return &longhorn.Setting{ObjectMeta: at(string(name)), Value: value, Status: longhorn.SettingStatus{Applied: true}}
}

// ownSetting is Fairlead's; without a value there.
func ownSetting(name catalog.Name, value string) *v1alpha1.Setting {
	return &v1alpha1.Setting{ObjectMeta: at(string(name)), Value: &value}
}

func attached(name string) *longhorn.Volume {
	v := &longhorn.Volume{ObjectMeta: at(name)}
	v.Status.State, v.Status.CurrentNodeID = "attached", "node-1"
	return v
}

// newWorld has two nodes with an instance manager each, the attacher, the
// engine image and the CSI plugin; all as Longhorn makes them by default.
func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: clocktesting.NewFakePassiveClock(noon)}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder()) // many times as fast as the default
	w.store = interceptor.NewClient(
		fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithStatusSubresource(&v1alpha1.NetworkRollout{}, &v1alpha1.Setting{}, &longhorn.Setting{}).Build(),
		interceptor.Funcs{Create: w.create, Delete: w.delete, Patch: w.patch},
	)
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: at(profile.Name)}
	rollout.Status.Recorded = true
	all := []client.Object{rollout, attacher(), daemonSet("engine-image-ei-1", "engine-image"), daemonSet(profile.ClientDaemonSet, "csi")}
	for _, name := range []string{"node-1", "node-2"} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": "fast", "zone": ""}}}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		all = append(all, node, &longhorn.Node{ObjectMeta: at(name)},
			&longhorn.InstanceManager{ObjectMeta: at("im-" + name), Spec: longhorn.InstanceManagerSpec{NodeID: name, DataEngine: "v1"}})
	}
	for _, name := range []string{"low", "high", "higher", "theirs"} {
		all = append(all, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	for _, o := range append(all, objects...) {
		w.must(w.store.Create(t.Context(), o))
	}
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
	w.dead, w.dies, w.wrote = false, -1, nil
	write := func(verb string, o client.Object, do func() error) error { return w.write(verb, o, do) }
	api := interceptor.NewClient(w.store, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return w.cached().Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.cached().List(ctx, list, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return write("create", o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return write("patch", o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write("delete", o, func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return write("status", o, func() error { return c.SubResource(name).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, name string, o client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return write("status", o, func() error { return c.SubResource(name).Patch(ctx, o, patch, opts...) })
		},
	})
	live := interceptor.NewClient(w.store, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if change := w.meanwhile; change != nil {
				w.meanwhile = nil
				change()
			}
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
				if w.networkLists++; w.networksFail != nil {
					return w.networksFail
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.registry = prometheus.NewRegistry()
	m, err := newMetrics(w.registry, profile.Name)
	w.must(err)
	w.r = &Reconciler{
		Profile: profile, Applies: true, Policy: rollout.Policy{Settle: time.Second}, Client: api, API: w.store,
		Cached: cluster.NewReader(profile, api, api), Live: cluster.NewReader(profile, live, live),
		Events: recorder{w}, Clock: w.clock, Log: slog.New(slog.DiscardHandler), metrics: m,
	}
}

func (w *world) cached() client.Reader {
	if w.cache != nil {
		return w.cache
	}
	return w.store
}

// freeze has the controller's cache stay as it is.
func (w *world) freeze() {
	w.Helper()
	scheme, err := newScheme()
	w.must(err)
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, list := range []client.ObjectList{
		&v1alpha1.NetworkRolloutList{}, &v1alpha1.SettingList{}, &longhorn.SettingList{}, &longhorn.VolumeList{}, &longhorn.NodeList{},
		&longhorn.InstanceManagerList{}, &corev1.NodeList{}, &corev1.PodList{}, &appsv1.DaemonSetList{}, &appsv1.DeploymentList{},
		&schedulingv1.PriorityClassList{},
	} {
		w.must(w.store.List(w.Context(), list))
		b = b.WithLists(list)
	}
	w.cache = b.Build()
}

type recorder struct{ *world }

func (r recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	o, err := meta.Accessor(regarding)
	r.must(err)
	r.events = append(r.events, fmt.Sprintf("%s %s %T/%s: ", kind, reason, regarding, o.GetName())+fmt.Sprintf(note, args...))
}

// told are the events so far with this text.
func (w *world) told(text string) []string {
	return slices.DeleteFunc(slices.Clone(w.events), func(e string) bool { return !strings.Contains(e, text) })
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// write counts what the controller writes, and lets it die there.
func (w *world) write(verb string, o client.Object, do func() error) error {
	if w.dead {
		return errDied
	}
	if w.fail != nil {
		if err := w.fail(verb, o); err != nil {
			return err
		}
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*")
	w.wrote = append(w.wrote, fmt.Sprintf("%s %s/%s", verb, kind, o.GetName()))
	if len(w.wrote)-1 == w.dies {
		w.dead = true
		if w.done {
			w.must(do())
		}
		return errDied
	}
	err := do()
	if err == nil && w.watch != nil {
		w.watch()
	}
	return err
}

func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	w.uids++
	o.SetUID(types.UID(fmt.Sprint("uid-", w.uids)))
	return c.Create(ctx, o, opts...)
}

// delete minds the preconditions, which the fake does not.
func (w *world) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	given := options.Preconditions
	have, _ := o.DeepCopyObject().(client.Object)
	switch err := c.Get(ctx, client.ObjectKeyFromObject(o), have); {
	case given == nil || given.UID == nil:
		if _, ok := o.(*corev1.Pod); ok {
			w.Errorf("pod %s is deleted whichever it is", o.GetName())
		}
	case err != nil:
	case have.GetUID() != *given.UID, given.ResourceVersion != nil && have.GetResourceVersion() != *given.ResourceVersion:
		return apierrors.NewConflict(corev1.Resource("objects"), o.GetName(), errors.New("it is another, or has changed"))
	}
	return c.Delete(ctx, o, opts...)
}

// patch counts generations of templates, which the fake does not: what rolls is not Ready.
func (w *world) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	if err := c.Patch(ctx, o, patch, opts...); err != nil {
		return err
	}
	switch o.(type) {
	case *appsv1.Deployment, *appsv1.DaemonSet:
		o.SetGeneration(o.GetGeneration() + 1)
		return c.Update(ctx, o)
	}
	return nil
}

func (w *world) reconcile() (ctrl.Result, error) {
	return w.r.Reconcile(context.Background(), ctrl.Request{})
}

// step is one look of the controller.
func (w *world) step() ctrl.Result {
	w.Helper()
	result, err := w.reconcile()
	w.must(err)
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
			w.clock.SetTime(w.clock.Now().Add(again))
			continue
		}
		w.clock.SetTime(w.clock.Now().Add(time.Second))
	}
	w.Fatalf("it does not come to rest: %q", w.wrote[max(0, len(w.wrote)-20):])
}

// others do the next thing that Longhorn and Kubernetes do; false where there is none.
func (w *world) others() (did bool) {
	w.Helper()
	ctx := context.Background()
	var managers longhorn.InstanceManagerList
	w.must(w.store.List(ctx, &managers))
	for i := range managers.Items {
		m := &managers.Items[i]
		switch pod := w.pod(m.Name); {
		case pod == nil:
			w.must(w.store.Create(ctx, w.managerPod(m)))
			did = true
		case len(pod.Status.Conditions) == 0:
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.must(w.store.Status().Update(ctx, pod))
			did = true
		}
	}
	var deployments appsv1.DeploymentList
	w.must(w.store.List(ctx, &deployments))
	for i := range deployments.Items {
		if d := &deployments.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3, ReadyReplicas: 3}
			w.must(w.store.Status().Update(ctx, d))
			did = true
		}
	}
	var daemonSets appsv1.DaemonSetList
	w.must(w.store.List(ctx, &daemonSets))
	for i := range daemonSets.Items {
		if d := &daemonSets.Items[i]; d.Status.ObservedGeneration != d.Generation {
			d.Status = appsv1.DaemonSetStatus{ObservedGeneration: d.Generation, DesiredNumberScheduled: 2, UpdatedNumberScheduled: 2, NumberAvailable: 2, NumberReady: 2}
			w.must(w.store.Status().Update(ctx, d))
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
		w.must(err)
		text, err := json.Marshal(list)
		w.must(err)
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
	o := P(new(T))
	err := w.store.Get(context.Background(), client.ObjectKey{Namespace: profile.Namespace, Name: name}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return o
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
	w.must(w.store.Update(context.Background(), s))
}

// setSystem changes Longhorn's setting. Longhorn finds its gate closed, and gives up after three retries.
func (w *world) setSystem(name catalog.Name, value string) {
	w.Helper()
	w.setSystemOpen(name, value)
	s := w.system(name)
	s.Status.Applied = false
	w.must(w.store.Status().Update(context.Background(), s))
}

// setSystemOpen changes Longhorn's setting, whose gate is open: Longhorn never writes its status.
func (w *world) setSystemOpen(name catalog.Name, value string) {
	w.Helper()
	s := w.system(name)
	s.Value = value
	w.must(w.store.Update(context.Background(), s))
}

// wroteToLonghorn lists the controller's writes to Longhorn's settings.
func (w *world) wroteToLonghorn() []string {
	return slices.DeleteFunc(slices.Clone(w.wrote), func(text string) bool { return !strings.Contains(text, "longhorn.Setting/") })
}

// metric is the value of a series, by the name of its metric and the values of its labels.
func (w *world) metric(name string, labels ...string) float64 {
	w.Helper()
	families, err := w.registry.Gather()
	w.must(err)
	for _, family := range families {
		for _, series := range family.Metric {
			var have []string
			for _, l := range series.Label {
				have = append(have, l.GetValue())
			}
			if family.GetName() == name && !slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(have, l) }) {
				return series.GetCounter().GetValue() + series.GetGauge().GetValue()
			}
		}
	}
	return -1
}
