package compare

import "regexp"

// Allowed differences, by expressions on lines of Differences.
type Allowed []*regexp.Regexp

func (a Allowed) has(line string) bool {
	for _, expression := range a {
		if expression.MatchString(line) {
			return true
		}
	}
	return false
}

// StandIn lists in what the stand-in may differ from the real manager, and why.
func StandIn() Allowed {
	return Allowed{}
}
