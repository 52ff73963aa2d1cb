// Package validators holds the rules that judge changes, one per file. A rule
// is a pure function from a view of the change and facts to a Verdict, with all
// problems at once, and for each what to do.
package validators
