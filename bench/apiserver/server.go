// Package apiserver serves a large cluster to measure readers with: objects of
// real size, in the encodings and pages of the API server.
package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
)

// Server is the API server of one cluster. It answers lists and single reads.
type Server struct {
	scheme *runtime.Scheme
	kinds  map[string]*kind // by resource and group
	pages  sync.Map         // by URL: what was sent is sent again

	mu    sync.Mutex
	lists []Request
}

// Request is one request for a list.
type Request struct {
	Resource string
	Limit    int
	Bytes    int
}

// kind has its objects either typed or, for custom resources, as JSON.
type kind struct {
	gvk    schema.GroupVersionKind
	typed  []runtime.Object
	custom []custom
}

type custom struct {
	name   string
	labels labels.Set
	object json.RawMessage
}

// Lists are the requests for lists so far.
func (s *Server) Lists() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.lists)
}

// Mapper knows the kinds that the server has.
func (s *Server) Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	add := func(gvk schema.GroupVersionKind, resource string) {
		scope := meta.RESTScopeNamespace
		if slices.Contains(ofCluster, resource) {
			scope = meta.RESTScopeRoot
		}
		plural := gvk.GroupVersion().WithResource(schema.ParseGroupResource(resource).Resource)
		mapper.AddSpecific(gvk, plural, plural, scope)
	}
	for gvk := range s.scheme.AllKnownTypes() { // also those that are never asked for
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		add(gvk, plural.GroupResource().String())
	}
	for resource, k := range s.kinds {
		add(k.gvk, resource)
	}
	return mapper
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource, name := find(r.URL.Path)
	k := s.kinds[resource]
	if k == nil {
		notFound(w)
		return
	}
	if r.URL.Query().Get("watch") != "" {
		watchNothing(w, r)
		return
	}
	mediaType := "application/json"
	if strings.Contains(r.Header.Get("Accept"), "protobuf") && k.custom == nil {
		mediaType = "application/vnd.kubernetes.protobuf"
	}
	key := mediaType + r.URL.String()
	content, sent := s.pages.Load(key)
	if !sent {
		var err error
		if name != "" {
			content, err = s.one(k, name, mediaType)
		} else {
			content, err = s.page(k, r, mediaType)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.pages.Store(key, content)
	}
	answer := content.([]byte)
	if answer == nil {
		notFound(w)
		return
	}
	if name == "" {
		limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		s.mu.Lock()
		s.lists = append(s.lists, Request{resource, limit, len(answer)})
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", mediaType)
	_, _ = w.Write(answer)
}

// watchNothing is a watch of what never changes. It has no initial events: caches list instead.
func watchNothing(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") != "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`))
		return
	}
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// find reads the resource, as its CustomResourceDefinition is named, and the name
// of an object, if there is one, out of a path.
func find(path string) (resource, name string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group, rest := "", parts[min(2, len(parts)):] // api/v1/...
	if parts[0] == "apis" && len(parts) > 2 {
		group, rest = parts[1], parts[3:]
	}
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
	}
	if len(rest) > 1 {
		name = rest[1]
	}
	if len(rest) == 0 {
		return "", ""
	}
	return schema.GroupResource{Group: group, Resource: rest[0]}.String(), name
}

func (s *Server) one(k *kind, name, mediaType string) ([]byte, error) {
	for _, c := range k.custom {
		if c.name == name {
			return c.object, nil
		}
	}
	for _, o := range k.typed {
		if accessor, err := meta.Accessor(o); err == nil && accessor.GetName() == name {
			gvk := k.gvk
			if k.metadata() {
				gvk = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
			}
			return s.encode(o, gvk, mediaType)
		}
	}
	return nil, nil
}

func (s *Server) page(k *kind, r *http.Request, mediaType string) ([]byte, error) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	from, _ := strconv.Atoi(query.Get("continue"))
	limit, _ := strconv.Atoi(query.Get("limit"))
	if k.custom != nil {
		selected := slices.DeleteFunc(slices.Clone(k.custom), func(c custom) bool { return !selector.Matches(c.labels) })
		items, next := cut(selected, from, limit)
		var list bytes.Buffer
		fmt.Fprintf(&list, `{"apiVersion":%q,"items":[`, k.gvk.GroupVersion())
		for i, item := range items {
			if i > 0 {
				list.WriteByte(',')
			}
			list.Write(item.object)
		}
		fmt.Fprintf(&list, `],"kind":"%sList","metadata":{"continue":%q,"resourceVersion":"1"}}`, k.gvk.Kind, next)
		return list.Bytes(), nil
	}
	selected := slices.DeleteFunc(slices.Clone(k.typed), func(o runtime.Object) bool {
		accessor, err := meta.Accessor(o)
		return err != nil || !selector.Matches(labels.Set(accessor.GetLabels()))
	})
	items, next := cut(selected, from, limit)
	listKind := k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List")
	var list runtime.Object = &metav1.PartialObjectMetadataList{}
	if !k.metadata() {
		if list, err = s.scheme.New(listKind); err != nil {
			return nil, err
		}
	} else {
		listKind = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList")
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetContinue(next)
	return s.encode(list, listKind, mediaType)
}

// metadata: of these kinds only metadata is asked for.
func (k *kind) metadata() bool {
	if len(k.typed) == 0 {
		return false
	}
	_, partial := k.typed[0].(*metav1.PartialObjectMetadata)
	return partial
}

func (s *Server) encode(o runtime.Object, gvk schema.GroupVersionKind, mediaType string) ([]byte, error) {
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(gvk)
	if mediaType == "application/json" {
		return json.Marshal(o)
	}
	var content bytes.Buffer
	err := protobuf.NewSerializer(s.scheme, s.scheme).Encode(o, &content)
	return content.Bytes(), err
}

func cut[T any](items []T, from, limit int) (page []T, next string) {
	to := len(items)
	if limit > 0 && from+limit < to {
		to = from + limit
		next = strconv.Itoa(to)
	}
	return items[min(from, to):to], next
}

func notFound(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`))
}

// managed adds the managed fields that an object has which one manager wrote whole.
func managed(object map[string]any) map[string]any {
	fields := map[string]any{}
	for _, part := range []string{"spec", "status"} {
		if value, ok := object[part]; ok {
			fields["f:"+part] = fieldsOf(value)
		}
	}
	object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"apiVersion": "longhorn.io/v1beta2", "fieldsType": "FieldsV1", "fieldsV1": fields,
		"manager": "longhorn-manager", "operation": "Update", "time": "2026-03-02T09:14:07Z",
	}}
	return object
}

func fieldsOf(value any) map[string]any {
	fields := map[string]any{}
	if object, ok := value.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(object)) {
			fields["f:"+name] = fieldsOf(object[name])
		}
	}
	return fields
}
