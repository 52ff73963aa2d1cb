package fencing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
)

func TestClip(t *testing.T) {
	for message, want := range map[string]string{
		"":           "",
		"0123456789": "0123456789", "0123456789a": "0123456...",
		"012345ääää":    "012345...",
		"bad \xff text": "bad ? text",
	} {
		if got := Clip(message, 10); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

// A driver may quote all that a command has printed: a record must not grow by it.
func TestWhatADriverSaysIsCut(t *testing.T) {
	said := strings.Repeat("ä", 100_000)
	got := FenceObject(&csiaddons.NetworkFence{Status: csiaddons.NetworkFenceStatus{Result: "Failed", Message: said}}).Message
	if len(got) > maxMessage || len(got) < maxMessage-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä...") {
		t.Fatalf("got %d bytes: %q", len(got), got)
	}
}
