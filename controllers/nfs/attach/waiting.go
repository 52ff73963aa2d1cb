package attach

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kinds of objects that an attachment may wait for.
const (
	waitService = "service"
	waitVolume  = "volume"
	waitNode    = "node"
)

// waiting holds pending attachments by the object that they wait for.
type waiting struct {
	mu    sync.Mutex
	names map[string]map[string]bool // VolumeAttachments, by kind and name
}

// add remembers that a VolumeAttachment waits.
func (w *waiting) add(kind, name, attachment string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := kind + " " + name
	if w.names == nil {
		w.names = map[string]map[string]bool{}
	}
	if w.names[key] == nil {
		w.names[key] = map[string]bool{}
	}
	w.names[key][attachment] = true
}

// take removes and returns the attachments that wait for a changed object.
func (w *waiting) take(kind, name string) []reconcile.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := kind + " " + name
	var requests []reconcile.Request
	for attachment := range w.names[key] {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: attachment}})
	}
	delete(w.names, key)
	return requests
}
