package apiserver

import (
	"encoding/json"
	"net/http"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// discover answers what kinds there are.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	var answer any
	switch {
	case r.URL.Path == "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case r.URL.Path == "/apis":
		list, seen := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}, map[string]bool{"": true}
		for _, k := range s.kinds {
			if group := k.gvk.Group; !seen[group] {
				seen[group] = true
				version := metav1.GroupVersionForDiscovery{GroupVersion: k.gvk.GroupVersion().String(), Version: k.gvk.Version}
				list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		answer = list
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		of := strings.Join(parts[1:], "/")
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: of}
		for resource, k := range s.kinds {
			if k.gvk.GroupVersion().String() == of {
				plural := schema.ParseGroupResource(resource).Resource
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: k.gvk.Kind, Namespaced: k.namespaced})
			}
		}
		answer = list
	default:
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
	return true
}

// view is the object as it is asked for: whole, or its metadata alone.
func view(r *http.Request, o runtime.Object) runtime.Object {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return o
	}
	accessor, err := meta.Accessor(o)
	if err != nil {
		return o
	}
	partial := meta.AsPartialObjectMetadata(accessor)
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return partial
}

func (s *Server) serializer(r *http.Request, custom bool) runtime.SerializerInfo {
	mediaType := runtime.ContentTypeJSON
	accept := r.Header.Get("Accept")
	if strings.Contains(accept, "protobuf") && (!custom || strings.Contains(accept, "as=PartialObjectMetadata")) {
		mediaType = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(s.codecs.SupportedMediaTypes(), mediaType)
	return info
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, k *stored, o runtime.Object) {
	if o == nil {
		notFound(w)
		return
	}
	info := s.serializer(r, k.custom)
	w.Header().Set("Content-Type", info.MediaType)
	if r.Method == http.MethodPost {
		w.WriteHeader(http.StatusCreated)
	}
	_ = info.Serializer.Encode(view(r, o), w)
}

// selects tells whether a request asks for an object.
func selects(r *http.Request, t target) (func(runtime.Object) bool, error) {
	byLabel, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(r.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	return func(o runtime.Object) bool {
		accessor, err := meta.Accessor(o)
		if err != nil || t.namespace != "" && t.namespace != accessor.GetNamespace() || !byLabel.Matches(labels.Set(accessor.GetLabels())) {
			return false
		}
		set := fields.Set{"metadata.name": accessor.GetName()}
		if pod, ok := o.(*corev1.Pod); ok {
			set["spec.nodeName"] = pod.Spec.NodeName
		}
		return byField.Matches(set)
	}, nil
}

// selected are the objects that a request asks for from a place on, and where the next page begins.
func (s *Server) selected(t target, matches func(runtime.Object) bool, from, limit int) (objects []runtime.Object, next string, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := from; i < len(t.names); i++ {
		if limit > 0 && len(objects) == limit {
			return objects, strconv.Itoa(i), s.version
		}
		if o := t.objects[t.names[i]]; matches(o) {
			objects = append(objects, o)
		}
	}
	return objects, "", s.version
}

func (s *Server) list(w http.ResponseWriter, r *http.Request, t target) {
	matches, err := selects(r, t)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	objects, next, version := s.selected(t, matches, from, limit)
	var list runtime.Object
	listKind := t.gvk.GroupVersion().WithKind(t.gvk.Kind + "List")
	switch {
	case strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList"):
		listKind, list = metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"), &metav1.PartialObjectMetadataList{}
		for i, o := range objects {
			objects[i] = meta.AsPartialObjectMetadata(o.(metav1.Object))
		}
	case t.custom:
		list = &unstructured.UnstructuredList{}
	default:
		if list, err = s.scheme.New(listKind); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	if err := meta.SetList(list, objects); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	list.GetObjectKind().SetGroupVersionKind(listKind)
	if accessor, err := meta.ListAccessor(list); err == nil {
		accessor.SetContinue(next)
		accessor.SetResourceVersion(strconv.FormatInt(version, 10))
	}
	info := s.serializer(r, t.custom)
	w.Header().Set("Content-Type", info.MediaType)
	_ = info.Serializer.Encode(list, w)
}

// watch sends what is there, if that is asked for, and each change from then on.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, t target) {
	matches, err := selects(r, t)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	info := s.serializer(r, t.custom)
	w.Header().Set("Content-Type", info.MediaType+";stream=watch")
	w.WriteHeader(http.StatusOK)
	frames := info.StreamSerializer.Framer.NewFrameWriter(w)
	send := func(event watch.EventType, o runtime.Object) bool {
		raw, err := runtime.Encode(info.Serializer, view(r, o))
		if err != nil {
			return false
		}
		return info.StreamSerializer.Encode(&metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: raw}}, frames) == nil
	}
	sent, _ := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		var objects []runtime.Object
		objects, _, sent = s.selected(t, matches, 0, 0)
		for _, o := range objects {
			if !send(watch.Added, o) {
				return
			}
		}
		end := &unstructured.Unstructured{}
		end.SetGroupVersionKind(t.gvk)
		end.SetResourceVersion(strconv.FormatInt(sent, 10))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		if !send(watch.Bookmark, s.asTyped(t, end)) {
			return
		}
	}
	for {
		w.(http.Flusher).Flush()
		s.mu.Lock()
		changed := s.changed
		changes := t.log[sort.Search(len(t.log), func(i int) bool { return t.log[i].version > sent }):]
		s.mu.Unlock()
		for _, change := range changes {
			if matches(change.Object) && !send(change.Type, change.Object) {
				return
			}
			sent = change.version
		}
		if len(changes) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// asTyped is an object of a kind of Kubernetes' own as its type, and any other as it is.
func (s *Server) asTyped(t target, u *unstructured.Unstructured) runtime.Object {
	if t.custom {
		return u
	}
	typed, err := s.scheme.New(t.gvk)
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed) != nil {
		return u
	}
	typed.GetObjectKind().SetGroupVersionKind(t.gvk)
	return typed
}
