// Package catalog has the settings: which values each takes, what it asks of components, in
// which resource it is set, and which volumes must be detached before it is applied.
package catalog
