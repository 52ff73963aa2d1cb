package fence

import "testing"

func TestMessagesAreLinkedOnce(t *testing.T) {
	once := Linked("not fenced", ReasonAddressInUse)
	if once != "not fenced; see docs/fencing.md#addressinuse" || Linked(once, ReasonAddressInUse) != once || Linked("", ReasonReady) != "" {
		t.Errorf("got %q", once)
	}
}
