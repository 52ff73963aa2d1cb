package apiserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// write creates, replaces, patches (by merging) or deletes an object, unless it has changed since it was read.
func (s *Server) write(w http.ResponseWriter, r *http.Request, t target) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	is := t.objects[t.namespace+"/"+t.name]
	switch {
	case r.Method != http.MethodPost && is == nil:
		notFound(w)
		return
	case r.Method == http.MethodDelete:
		s.delete(t.stored, is)
		s.answer(w, r, t.stored, is)
		return
	}
	o, err := s.written(r, t, is, body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.Method == http.MethodPost {
		if t.objects[key(o)] != nil {
			refuse(w, http.StatusConflict, "AlreadyExists")
			return
		}
		if accessor, err := meta.Accessor(o); err == nil {
			accessor.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version)))
			accessor.SetCreationTimestamp(metav1.Now())
		}
	}
	if is != nil && version(o) != "" && version(o) != version(is) {
		refuse(w, http.StatusConflict, "Conflict")
		return
	}
	if t.resource == "events.events.k8s.io" { // nobody reads them
		s.answer(w, r, t.stored, o)
		return
	}
	s.put(t.stored, o)
	s.answer(w, r, t.stored, o)
	if t.resource == "networkfences.csiaddons.openshift.io" {
		s.confirm(t.stored, o.(*unstructured.Unstructured))
	}
}

func version(o runtime.Object) string {
	accessor, err := meta.Accessor(o)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code})
}

// written is the object as a request leaves it.
func (s *Server) written(r *http.Request, t target, is runtime.Object, body []byte) (runtime.Object, error) {
	if !t.custom && r.Method != http.MethodPatch {
		o, _, err := s.codecs.UniversalDeserializer().Decode(body, nil, nil)
		return o, err
	}
	if r.Method == http.MethodPatch {
		before, err := json.Marshal(is)
		if err != nil {
			return nil, err
		}
		if body, err = jsonpatch.MergePatch(before, body); err != nil {
			return nil, err
		}
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(body); err != nil {
		return nil, err
	}
	if t.subresource == "status" {
		whole := is.(*unstructured.Unstructured).DeepCopy()
		whole.Object["status"] = u.Object["status"]
		whole.SetResourceVersion(u.GetResourceVersion())
		u = whole
	}
	return s.asTyped(t, u), nil
}

// confirm does csi-addons' part at once.
func (s *Server) confirm(k *stored, fence *unstructured.Unstructured) {
	state, _, _ := unstructured.NestedString(fence.Object, "spec", "fenceState")
	message := "fencing operation successful"
	if state == "Unfenced" {
		message = "unfencing operation successful"
	}
	done := fence.DeepCopy()
	done.Object["status"] = map[string]any{"result": "Succeeded", "message": message}
	s.put(k, done)
}

func notFound(w http.ResponseWriter) { refuse(w, http.StatusNotFound, "NotFound") }
