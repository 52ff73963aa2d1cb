// Package mutators holds the rules that change objects on admission, one per file. A rule is a pure function from a view of
// the object and facts to a Result. Rules are idempotent. They remove only what a setting added, never what users added.
package mutators
