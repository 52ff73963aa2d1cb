package fence

import (
	"fmt"
	"strings"
)

// Refusal is why something is not done: in one word, and in a sentence that says
// what to do.
type Refusal struct {
	Reason, Message string
}

// Refuse with a reason, and a message that is formatted.
func Refuse(reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// Few shows the first few of many.
func Few(names []string) string {
	const most = 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
