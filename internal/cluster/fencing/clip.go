package fencing

import "strings"

// maxMessage is as much of what others say as gets into a record: it is told again in
// events, and a record has room for many.
const maxMessage = 512

// Clip cuts a message that is longer than so many bytes, between two characters.
func Clip(message string, most int) string {
	const more = "..."
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= most {
		return message
	}
	return strings.ToValidUTF8(message[:most-len(more)], "") + more
}
