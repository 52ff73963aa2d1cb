package kit

import (
	"maps"
	"sync"
)

// Once keeps what was reported last of each object, so that a report is repeated only
// when it changes. It is kept in memory: a new leader reports again. The zero value is ready.
type Once[K, V comparable] struct {
	mu       sync.Mutex
	reported map[K]V
}

// IsNew reports whether value differs from the last value for key, and keeps it.
func (o *Once[K, V]) IsNew(key K, value V) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last, ok := o.reported[key]; ok && last == value {
		return false
	}
	if o.reported == nil {
		o.reported = map[K]V{}
	}
	o.reported[key] = value
	return true
}

// Forget what was reported for a key.
func (o *Once[K, V]) Forget(key K) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.reported, key)
}

// ForgetAll forgets what was reported for all keys that match.
func (o *Once[K, V]) ForgetAll(match func(K) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.reported, func(k K, _ V) bool { return match(k) })
}

// Len is the number of keys, so that tests find what is never forgotten.
func (o *Once[K, V]) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.reported)
}
