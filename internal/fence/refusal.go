package fence

import (
	"fmt"
	"strings"
)

// Refusal is why something is not done: a reason in one word, and a message that says what to do.
type Refusal struct {
	Reason, Message string
}

// Refuse with a reason and a formatted message.
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

// Clip shortens a message to a maximum of bytes, without splitting a character.
func Clip(message string, maximum int) string {
	const more = "..."
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= maximum {
		return message
	}
	return strings.ToValidUTF8(message[:maximum-len(more)], "") + more
}

// reasonsPage has a heading for each reason.
const reasonsPage = "docs/fencing.md"

// PageOf a reason: where it is explained.
func PageOf(reason string) string { return reasonsPage + "#" + strings.ToLower(reason) }

// Link to the page of a reason, for the end of a message.
func Link(reason string) string { return "; see " + PageOf(reason) }

// Linked is a message that ends with where its reason is explained, unless it says that already.
func Linked(message, reason string) string {
	if message == "" || strings.Contains(message, reasonsPage) {
		return message
	}
	return message + Link(reason)
}
