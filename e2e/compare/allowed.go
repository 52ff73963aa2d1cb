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

// Raced differences come and go from run to run, with the real manager too.
func Raced() Allowed {
	return Allowed{
		// Longhorn and Kubernetes' endpoints controller race for the Endpoints of a Service with a selector, and their owner.
		regexp.MustCompile(`^Endpoints \S+: metadata\.ownerReferences: `),
		// Longhorn takes the addresses of a share manager that has stopped away when it looks next, up to 30 s later.
		regexp.MustCompile(`^Endpoints \S+: subsets: recorded .*, found nothing$`),
	}
}
