package kit

import "sync"

// Once keeps what was reported last of each object, so that a report is repeated only
// when it changes. It is kept in memory: a new leader reports again. The zero value is ready.
type Once[K, V comparable] struct{ reported sync.Map }

// IsNew reports whether value differs from the last value for key, and keeps it.
func (o *Once[K, V]) IsNew(key K, value V) bool {
	last, known := o.reported.Swap(key, value)
	return !known || last != any(value)
}

// Forget what was reported for a key.
func (o *Once[K, V]) Forget(key K) { o.reported.Delete(key) }

// ForgetAll forgets what was reported for all keys that match.
func (o *Once[K, V]) ForgetAll(match func(K) bool) {
	for key := range o.reported.Range {
		if k, ok := key.(K); ok && match(k) {
			o.reported.Delete(key)
		}
	}
}

// Len is the number of keys, so that tests find what is never forgotten.
func (o *Once[K, V]) Len() (n int) {
	for range o.reported.Range {
		n++
	}
	return n
}
