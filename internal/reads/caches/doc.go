// Package caches chooses what each process caches: kinds, selectors, and which fields of an object are kept.
package caches
