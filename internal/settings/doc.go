// Package settings knows the settings: what values they take, which of two
// sources wins, what must be detached before one may be applied, and which step
// of a roll-out comes next. Every function is pure: values in, verdict out.
package settings
