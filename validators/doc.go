// Package validators holds the rules that accept or refuse changes, one per file. A rule is a pure function from a view
// of the change and facts to a Verdict, which has all problems at once, each with what to do.
package validators
