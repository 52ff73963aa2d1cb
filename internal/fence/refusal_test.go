package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMessagesAreLinkedOnce(t *testing.T) {
	once := Linked("not fenced", ReasonAddressInUse)
	must.Check(t, once == "not fenced; see docs/fencing.md#addressinuse" && Linked(once, ReasonAddressInUse) == once && Linked("", ReasonReady) == "", "got %q", once)
}

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
