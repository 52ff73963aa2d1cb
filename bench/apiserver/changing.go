package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
)

// Changing is an API server whose objects change: it has watches, writes and discovery. It admits and validates nothing.
type Changing struct {
	scheme *runtime.Scheme
	codecs serializer.CodecFactory

	mu      sync.Mutex
	kinds   map[string]*stored // by resource and group
	version int64
	// changed is closed and replaced at each change.
	changed chan struct{}
	calls   map[Call]int
}

// Call is a kind of request.
type Call struct{ Agent, Verb, Resource string }

// stored are the objects of one kind, and how they changed.
type stored struct {
	gvk     schema.GroupVersionKind
	custom  bool
	names   []string // namespace/name, in the order of creation
	objects map[string]runtime.Object
	log     []change
}

type change struct {
	watch.Event
	version int64
}

// firstVersion is above those of the objects that are there at first.
const firstVersion = 1_000_000

// NewChanging begins with the objects of another server, which is not to be used any more. It has also
// the kinds that are only written.
func NewChanging(s *Server) (*Changing, error) {
	c := &Changing{
		scheme: s.scheme, codecs: serializer.NewCodecFactory(s.scheme), version: firstVersion,
		kinds: map[string]*stored{}, changed: make(chan struct{}), calls: map[Call]int{},
	}
	for resource, gvk := range map[string]schema.GroupVersionKind{
		"leases.coordination.k8s.io": {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
		"events.events.k8s.io":       {Group: "events.k8s.io", Version: "v1", Kind: "Event"},
		"configmaps":                 {Version: "v1", Kind: "ConfigMap"},
	} {
		c.kinds[resource] = &stored{gvk: gvk, objects: map[string]runtime.Object{}}
	}
	for resource, k := range s.kinds {
		kind := &stored{gvk: k.gvk, custom: k.custom != nil, objects: map[string]runtime.Object{}}
		c.kinds[resource] = kind
		for _, object := range k.custom {
			u := &unstructured.Unstructured{}
			if err := u.UnmarshalJSON(object.object); err != nil {
				return nil, err
			}
			kind.add(u)
		}
		for _, object := range k.typed {
			object.GetObjectKind().SetGroupVersionKind(k.gvk)
			kind.add(object)
		}
	}
	return c, nil
}

func key(o runtime.Object) string {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

func (k *stored) add(o runtime.Object) {
	k.names = append(k.names, key(o))
	k.objects[key(o)] = o
}

// Calls are the requests so far.
func (c *Changing) Calls() map[Call]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.calls)
}

// Changed is closed at the next change.
func (c *Changing) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// Each visits all objects of a kind, which must stay as they are.
func (c *Changing) Each(resource string, visit func(runtime.Object)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range c.kinds[resource].names {
		visit(c.kinds[resource].objects[name])
	}
}

// Change replaces an object of the cluster with a changed copy of it.
func (c *Changing) Change(resource, name string, change func(runtime.Object) runtime.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.kinds[resource]
	c.put(k, change(k.objects["/"+name]))
}

// Advance counts a write that nobody watches, such as of a kubelet's lease.
func (c *Changing) Advance() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
}

func (c *Changing) put(k *stored, o runtime.Object) {
	event := watch.Modified
	if k.objects[key(o)] == nil {
		event = watch.Added
		k.names = append(k.names, key(o))
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	k.objects[key(o)] = o
	c.log(k, event, o)
}

func (c *Changing) delete(k *stored, o runtime.Object) {
	delete(k.objects, key(o))
	k.names = slices.DeleteFunc(k.names, func(name string) bool { return name == key(o) })
	c.log(k, watch.Deleted, o.DeepCopyObject())
}

func (c *Changing) log(k *stored, event watch.EventType, o runtime.Object) {
	c.version++
	if accessor, err := meta.Accessor(o); err == nil {
		accessor.SetResourceVersion(fmt.Sprint(c.version))
	}
	k.log = append(k.log, change{watch.Event{Type: event, Object: o}, c.version})
	close(c.changed)
	c.changed = make(chan struct{})
}

// target is what a request is about.
type target struct {
	*stored
	resource, namespace, name, subresource string
}

func (c *Changing) target(path string) (t target) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = parts[1], parts[3:]
	default:
		return t
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		t.namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "")
	t.resource, t.name, t.subresource = schema.GroupResource{Group: group, Resource: parts[0]}.String(), parts[1], parts[2]
	t.stored = c.kinds[t.resource]
	return t
}

func (c *Changing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.discover(w, r) {
		return
	}
	t := c.target(r.URL.Path)
	verb := strings.ToLower(r.Method)
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		verb = "watch"
	case r.Method == http.MethodGet && t.name == "":
		verb = "list"
	}
	agent, _, _ := strings.Cut(r.UserAgent(), "/")
	what := t.resource
	if t.subresource != "" {
		what += "/" + t.subresource
	}
	c.mu.Lock()
	c.calls[Call{agent, verb, what}]++
	c.mu.Unlock()
	switch {
	case t.stored == nil:
		notFound(w)
	case verb == "watch":
		c.watch(w, r, t)
	case verb == "list":
		c.list(w, r, t)
	case verb == "get":
		c.mu.Lock()
		o := t.objects[t.namespace+"/"+t.name]
		c.mu.Unlock()
		c.answer(w, r, t.stored, o)
	default:
		c.write(w, r, t)
	}
}
