package invariants

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

var names = longhorn.DefaultNames()

// kinds that the checks need, by group and resource.
var kinds = map[string]func() client.Object{
	"/pods":     func() client.Object { return &corev1.Pod{} },
	"/services": func() client.Object { return &corev1.Service{} },
	//lint:ignore SA1019 for the readers of the deprecated API
	"/endpoints":                                     func() client.Object { return &corev1.Endpoints{} },
	"discovery.k8s.io/endpointslices":                func() client.Object { return &discoveryv1.EndpointSlice{} },
	"apps/daemonsets":                                func() client.Object { return &appsv1.DaemonSet{} },
	"storage.k8s.io/volumeattachments":               func() client.Object { return &storagev1.VolumeAttachment{} },
	"longhorn.io/settings":                           func() client.Object { return &longhorn.Setting{} },
	"longhorn.io/volumes":                            func() client.Object { return &longhorn.Volume{} },
	"longhorn.io/sharemanagers":                      func() client.Object { return &longhorn.ShareManager{} },
	"longhorn.io/engines":                            func() client.Object { return &longhorn.Engine{} },
	"longhorn.io/replicas":                           func() client.Object { return &longhorn.Replica{} },
	v1alpha1.GroupVersion.Group + "/settings":        func() client.Object { return &v1alpha1.Setting{} },
	v1alpha1.GroupVersion.Group + "/networkrollouts": func() client.Object { return &v1alpha1.NetworkRollout{} },
}

// event is one write of one object.
type event struct {
	sandbox.Write
	version uint64
	// before and after are the object; nil where there is none. An eviction's is the pod.
	before, after client.Object
}

// done: the API server accepted the request.
func (e event) done() bool { return e.Code < 300 }

// created: the object is another than before.
func (e event) created() bool {
	return e.after != nil && (e.before == nil || e.before.GetUID() != e.after.GetUID())
}

// removed: the object was to stay before, and is to go or gone now.
func (e event) removed() bool {
	return e.done() && e.before != nil && e.before.GetDeletionTimestamp() == nil && (e.after == nil || e.after.GetDeletionTimestamp() != nil)
}

// byUser reports whether a user of the test wrote, and no component.
func (e event) byUser() bool { return e.User == "admin" }

// byFairlead reports whether one of Fairlead's own accounts wrote.
func (e event) byFairlead() bool {
	return strings.HasPrefix(e.User, "system:serviceaccount:fairlead-system:")
}

// decode reads the object of a write: its state after it. A deletion of many is one of each.
func decode(w sandbox.Write) []event {
	resource, sub, _ := strings.Cut(w.Resource, "/")
	kind := kinds[w.Group+"/"+resource]
	if w.Resource == "pods/eviction" || kind == nil || sub == "scale" || sub == "binding" || !w.Changed {
		return []event{{Write: w}}
	}
	if w.Verb == "deletecollection" {
		var list struct{ Items []json.RawMessage }
		_ = json.Unmarshal(w.Response, &list) // none where the answer is no list
		var events []event
		for _, item := range list.Items {
			one := w
			one.Verb, one.Response = "delete", item
			events = append(events, decode(one)...)
		}
		for i := range events {
			events[i].version = 0 // the answer has the objects as they were before
		}
		return events
	}
	o := kind()
	if json.Unmarshal(w.Response, o) != nil || o.GetName() == "" {
		return []event{{Write: w}} // a Status
	}
	e := event{Write: w, after: o}
	e.Namespace, e.Name = o.GetNamespace(), o.GetName()
	e.version, _ = strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return []event{e}
}

// state has the objects that the checks need.
type state struct {
	nodeGate bool
	// now is when the present write was answered, last the one before.
	now, last time.Time
	// active: Fairlead is installed, and has recorded where components are.
	active bool
	// objects by kind (group and resource), namespace and name.
	objects map[string]map[string]client.Object
	// attached is since when each volume is attached, by Kubernetes and by Longhorn.
	attached map[string]time.Time
	// changed is when a value of Longhorn's settings was changed last.
	changed time.Time
	// valid is when each address was last reported for a volume's network.
	valid map[string]time.Time
	// evicted are the pods that Fairlead has evicted, by UID.
	evicted map[string]bool
}

func newState() *state {
	objects := map[string]map[string]client.Object{}
	for kind := range kinds {
		objects[kind] = map[string]client.Object{}
	}
	return &state{objects: objects, attached: map[string]time.Time{}, valid: map[string]time.Time{}, evicted: map[string]bool{}}
}

// apply applies a write to the state, and keeps the object before it.
func (s *state) apply(e event) event {
	for key := range s.reported() {
		s.valid[key] = s.now
	}
	defer func() {
		for key := range s.reported() {
			s.valid[key] = s.now
		}
		s.follow(e)
		s.last = s.now
	}()
	resource, _, _ := strings.Cut(e.Resource, "/")
	objects, key := s.objects[e.Group+"/"+resource], e.Namespace+"/"+e.Name
	e.before = objects[key]
	switch {
	case !e.done():
		e.after = e.before
	case e.Resource == "pods/eviction" && e.before != nil:
		pod := e.before.DeepCopyObject().(*corev1.Pod)
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		e.after, objects[key] = pod, pod
	case e.Verb == "delete" && (e.after == nil || e.after.GetDeletionTimestamp() == nil) || e.after != nil && ended(e.after):
		e.after = nil
		delete(objects, key)
		if resource == "services" { // the API server deletes them too, without a record: its afterDelete of Services
			delete(s.objects["/endpoints"], key)
		}
	case e.after != nil:
		objects[key] = e.after
	default:
		e.after = e.before // a Status, or a kind that no check needs
	}
	return e
}

// ended: with this write the object was removed from the store.
func ended(o client.Object) bool {
	grace := o.GetDeletionGracePeriodSeconds()
	return o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && (grace == nil || *grace == 0)
}

// follow keeps what follows from the objects.
func (s *state) follow(e event) {
	if rollout := s.rollout(); rollout != nil && rollout.Status.Recorded && !s.active {
		s.active = true
	}
	before, _ := e.before.(*longhorn.Setting)
	if after, ok := e.after.(*longhorn.Setting); ok && (before == nil || before.Value != after.Value) {
		s.changed = s.now
	}
	if removesFairlead(e) {
		s.active = false
		clear(s.objects[v1alpha1.GroupVersion.Group+"/settings"])
		clear(s.objects[v1alpha1.GroupVersion.Group+"/networkrollouts"])
	}
	for volume := range all[*longhorn.Volume](s) {
		name := volume.Name
		switch _, known := s.attached[name]; {
		case volume.Status.State != "attached" || len(s.nodesOf(name)) == 0:
			delete(s.attached, name)
		case !known:
			s.attached[name] = s.now
		}
	}
	for name := range s.attached {
		if get[*longhorn.Volume](s, "longhorn.io/volumes", name) == nil {
			delete(s.attached, name)
		}
	}
}

// removesFairlead: what Fairlead is installed with is being deleted. Its custom
// resources go with their definition, without a record.
func removesFairlead(e event) bool {
	name := e.Name == "fairlead-system" || e.Name == "fairlead" || strings.HasSuffix(e.Name, "."+v1alpha1.GroupVersion.Group)
	return e.done() && e.Verb == "delete" && e.byUser() && name
}

// all yields the objects of a kind.
func all[T client.Object](s *state) func(func(T) bool) {
	return func(yield func(T) bool) {
		for _, objects := range s.objects {
			for _, o := range objects {
				t, ok := o.(T)
				if !ok {
					break // all are of one kind
				}
				if !yield(t) {
					return
				}
			}
		}
	}
}

// get finds an object in Longhorn's namespace; nil is none.
func get[T client.Object](s *state, resource, name string) T {
	o, _ := s.objects[resource][names.Namespace+"/"+name].(T)
	return o
}

func (s *state) rollout() *v1alpha1.NetworkRollout {
	return get[*v1alpha1.NetworkRollout](s, v1alpha1.GroupVersion.Group+"/networkrollouts", longhorn.Name)
}

// value of a setting of Longhorn's, and whether it is applied.
func (s *state) value(name string) (value string, applied bool) {
	if setting := get[*longhorn.Setting](s, "longhorn.io/settings", name); setting != nil {
		return setting.Value, setting.Status.Applied
	}
	return "", true
}

// nodesOf are the nodes that Kubernetes has a volume attached to.
func (s *state) nodesOf(volume string) []string {
	var nodes []string
	for a := range all[*storagev1.VolumeAttachment](s) {
		if a.DeletionTimestamp == nil && a.Spec.Attacher == names.Driver && ptr.Deref(a.Spec.Source.PersistentVolumeName, "") == volume {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

// shared reports whether a volume is RWX.
func (s *state) shared(volume string) bool {
	v := get[*longhorn.Volume](s, "longhorn.io/volumes", volume)
	return v != nil && v.Spec.AccessMode == "rwx" && !v.Spec.Migratable
}
