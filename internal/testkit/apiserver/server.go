// Package apiserver serves a large cluster of nodes that fencing protects, in the encodings and pages of the API server.
// It admits and validates nothing, and confirms NetworkFences at once. The real API server does not hold 100,000 volumes
// on two cores.
package apiserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
)

// Server has the objects of one cluster, lists, watches, writes and discovery.
type Server struct {
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
	gvk        schema.GroupVersionKind
	custom     bool // stored as unstructured objects, and sent as JSON
	namespaced bool
	names      []string // namespace/name, in the order of creation
	objects    map[string]runtime.Object
	log        []change
}

type change struct {
	watch.Event
	version int64
}

func newServer(scheme *runtime.Scheme) *Server {
	s := &Server{
		scheme: scheme, codecs: serializer.NewCodecFactory(scheme), version: 1,
		kinds: map[string]*stored{}, changed: make(chan struct{}), calls: map[Call]int{},
	}
	for _, k := range []struct {
		resource, version, kind string
		custom, namespaced      bool
	}{
		{resource: "nodes", version: "v1", kind: "Node"},
		{resource: "pods", version: "v1", kind: "Pod", namespaced: true},
		{resource: "configmaps", version: "v1", kind: "ConfigMap", namespaced: true},
		{resource: "persistentvolumes", version: "v1", kind: "PersistentVolume"},
		{resource: "volumeattachments.storage.k8s.io", version: "v1", kind: "VolumeAttachment"},
		{resource: "csinodes.storage.k8s.io", version: "v1", kind: "CSINode"},
		{resource: "csidrivers.storage.k8s.io", version: "v1", kind: "CSIDriver"},
		{resource: "storageclasses.storage.k8s.io", version: "v1", kind: "StorageClass"},
		{resource: "leases.coordination.k8s.io", version: "v1", kind: "Lease", namespaced: true},
		{resource: "events.events.k8s.io", version: "v1", kind: "Event", namespaced: true},
		{resource: "networkfences.csiaddons.openshift.io", version: "v1alpha1", kind: "NetworkFence", custom: true},
		{resource: "networkfenceclasses.csiaddons.openshift.io", version: "v1alpha1", kind: "NetworkFenceClass", custom: true},
		{resource: "csiaddonsnodes.csiaddons.openshift.io", version: "v1alpha1", kind: "CSIAddonsNode", custom: true, namespaced: true},
		{resource: "nodefences.fairlead.io", version: "v1alpha1", kind: "NodeFence", custom: true},
	} {
		group := schema.ParseGroupResource(k.resource).Group
		s.kinds[k.resource] = &stored{
			gvk: schema.GroupVersionKind{Group: group, Version: k.version, Kind: k.kind}, custom: k.custom, namespaced: k.namespaced,
			objects: map[string]runtime.Object{},
		}
	}
	return s
}

func key(o runtime.Object) string {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return accessor.GetNamespace() + "/" + accessor.GetName()
}

// add an object of the cluster as it is at first.
func (s *Server) add(resource string, o runtime.Object) {
	k := s.kinds[resource]
	if accessor, err := meta.Accessor(o); err == nil {
		accessor.SetResourceVersion("1")
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	k.names = append(k.names, key(o))
	k.objects[key(o)] = o
}

// Calls are the requests so far.
func (s *Server) Calls() map[Call]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.calls)
}

// Changed is closed at the next change.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Each visits all objects of a kind, which must stay as they are.
func (s *Server) Each(resource string, visit func(runtime.Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.kinds[resource].names {
		visit(s.kinds[resource].objects[name])
	}
}

// Change replaces an object of the cluster with a changed copy of it.
func (s *Server) Change(resource, name string, change func(runtime.Object) runtime.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[resource]
	s.put(k, change(k.objects["/"+name]))
}

// Advance counts a write that is not watched, such as of a kubelet's lease.
func (s *Server) Advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
}

func (s *Server) put(k *stored, o runtime.Object) {
	event := watch.Modified
	if k.objects[key(o)] == nil {
		event = watch.Added
		k.names = append(k.names, key(o))
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk)
	k.objects[key(o)] = o
	s.log(k, event, o)
}

func (s *Server) delete(k *stored, o runtime.Object) {
	delete(k.objects, key(o))
	k.names = slices.DeleteFunc(k.names, func(name string) bool { return name == key(o) })
	s.log(k, watch.Deleted, o.DeepCopyObject())
}

func (s *Server) log(k *stored, event watch.EventType, o runtime.Object) {
	s.version++
	if accessor, err := meta.Accessor(o); err == nil {
		accessor.SetResourceVersion(fmt.Sprint(s.version))
	}
	k.log = append(k.log, change{watch.Event{Type: event, Object: o}, s.version})
	close(s.changed)
	s.changed = make(chan struct{})
}

// target is what a request is about.
type target struct {
	*stored
	resource, namespace, name, subresource string
}

func (s *Server) target(path string) (t target) {
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
	t.stored = s.kinds[t.resource]
	return t
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.discover(w, r) {
		return
	}
	t := s.target(r.URL.Path)
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
	s.mu.Lock()
	s.calls[Call{agent, verb, what}]++
	s.mu.Unlock()
	switch {
	case t.stored == nil:
		notFound(w)
	case verb == "watch":
		s.watch(w, r, t)
	case verb == "list":
		s.list(w, r, t)
	case verb == "get":
		s.mu.Lock()
		o := t.objects[t.namespace+"/"+t.name]
		s.mu.Unlock()
		s.answer(w, r, t.stored, o)
	default:
		s.write(w, r, t)
	}
}
