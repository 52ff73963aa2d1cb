// Package invariants replays the API server's record of writes, and says which
// of the invariants (docs/reference/safety.md) were broken, when, and by whose write.
//
// The checks are pure: writes in, violations out. Each file holds one invariant,
// and rules lists them. A rule is about one write (the objects before and after
// it), or about a condition that must not last: what follows a change of others
// takes a moment.
//
// The checks begin when Fairlead has recorded where Longhorn's components are,
// and end when Fairlead is removed.
package invariants
