package testkit

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// maxNote is the longest note that the API server accepts, in bytes.
const maxNote = 1024

// Event that a controller has emitted.
type Event struct {
	// About is the object as Kind/name.
	About, Type, Reason, Note string
	UID                       types.UID
}

// String is "Type Reason: note".
func (e Event) String() string { return e.Type + " " + e.Reason + ": " + e.Note }

// Recorder keeps events. It implements events.EventRecorder.
type Recorder struct {
	mu   sync.Mutex
	list []Event
}

// Eventf keeps an event. A note that the API server would refuse is not kept.
func (r *Recorder) Eventf(regarding, _ runtime.Object, kind, reason, _, note string, args ...any) {
	e := Event{Type: kind, Reason: reason, Note: fmt.Sprintf(note, args...)}
	if len(e.Note) > maxNote {
		return
	}
	e.About = reflect.TypeOf(regarding).Elem().Name() + "/"
	if ref, ok := regarding.(*corev1.ObjectReference); ok {
		e.About, e.UID = ref.Kind+"/"+ref.Name, ref.UID
	} else if o, err := meta.Accessor(regarding); err == nil {
		e.About, e.UID = e.About+o.GetName(), o.GetUID()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, e)
}

// All returns the events so far.
func (r *Recorder) All() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// Notes are the events as "Type Reason: note".
func (r *Recorder) Notes() []string {
	var notes []string
	for _, e := range r.All() {
		notes = append(notes, e.String())
	}
	return notes
}

// About are the events as "Type Reason Kind/name: note" that contain all of the texts.
func (r *Recorder) About(texts ...string) []string {
	var found []string
	for _, e := range r.All() {
		whole := e.Type + " " + e.Reason + " " + e.About + ": " + e.Note
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(whole, text) }) {
			found = append(found, whole)
		}
	}
	return found
}

// Reasons are the reasons of the events about an object.
func (r *Recorder) Reasons(uid types.UID) []string {
	var reasons []string
	for _, e := range r.All() {
		if e.UID == uid {
			reasons = append(reasons, e.Reason)
		}
	}
	return reasons
}

// Clear forgets all events.
func (r *Recorder) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = nil
}
