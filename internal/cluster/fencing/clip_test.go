package fencing

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fairlead-io/fairlead/internal/cluster/csiaddons"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestClip(t *testing.T) {
	for message, want := range map[string]string{
		"":           "",
		"0123456789": "0123456789", "0123456789a": "0123456...",
		"012345ääää":    "012345...",
		"bad \xff text": "bad ? text",
	} {
		must.Equal(t, Clip(message, 10), want, "%q", message)
	}
}

// A driver may quote the whole output of a command. Records stay small.
func TestDriverMessageIsCut(t *testing.T) {
	said := strings.Repeat("ä", 100_000)
	got := FenceObject(&csiaddons.NetworkFence{Status: csiaddons.NetworkFenceStatus{Result: "Failed", Message: said}}).Message
	if len(got) > maxMessage || len(got) < maxMessage-8 || !utf8.ValidString(got) || !strings.HasSuffix(got, "ä...") {
		t.Fatalf("got %d bytes: %q", len(got), got)
	}
}
