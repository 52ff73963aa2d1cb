package fencing

import "strings"

// maxMessage limits a message of another program in a record, in bytes. A record may have
// many messages, and events repeat them.
const maxMessage = 512

// Clip shortens a message to a maximum of bytes, without splitting a character.
func Clip(message string, maximum int) string {
	const more = "..."
	message = strings.ToValidUTF8(message, "?")
	if len(message) <= maximum {
		return message
	}
	return strings.ToValidUTF8(message[:maximum-len(more)], "") + more
}
