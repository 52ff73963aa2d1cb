// Package settings has what the rules about settings and networks share.
package settings

// Strictness is what a rule does about a questionable change.
type Strictness string

// Strictnesses.
const (
	Warn   Strictness = "Warn"
	Refuse Strictness = "Refuse"
)
