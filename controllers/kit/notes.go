package kit

import "github.com/fairlead-io/fairlead/internal/fence"

// MaxNote is the longest note of an event, in bytes.
// Source: k8s.io/kubernetes pkg/apis/core/validation/events.go, NoteLengthLimit.
const MaxNote = 1024

// Note cuts a message that is too long for an event, between two characters.
func Note(message string) string { return Clip(message, MaxNote) }

// Clip cuts a message that is longer than most bytes, between two characters.
func Clip(message string, most int) string { return fence.Clip(message, most) }
