// Package plan decides what the values in effect require of components: what is restarted or
// changed now, in which order, and what each setting waits for.
package plan
