// Package mutators holds the rules that shape objects as they are created, one
// per file. A rule is a pure function from a view of the object and facts to a
// Result. Applied twice it does nothing, and what others asked for stays: only
// what a setting put there is ever taken away.
package mutators
