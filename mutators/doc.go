// Package mutators holds the rules that shape objects as they are created, one
// per file. A rule is a pure function from a view of the object and facts to a
// Result. It only ever adds what is missing: applied twice it does nothing, and
// what others asked for stays.
package mutators
