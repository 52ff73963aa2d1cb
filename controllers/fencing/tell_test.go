package fencing

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
)

func TestLongEventsKeepLinkToReason(t *testing.T) {
	w := newWorld(t)
	w.look("node-1")
	for _, name := range strings.Fields("b c d e f g h") { // of as many storage clusters, of which no address is on record
		w.must(w.Create(w.Context(), volume("pvc-"+name, rbd, "cluster-"+name)))
		w.must(w.Create(w.Context(), attachment("pvc-"+name, "node-1")))
	}
	w.lose("node-1")
	w.taint("node-1", "nodeshutdown")
	w.look("node-1")
	w.look("node-1")
	if s := w.expect("node-1", v1alpha1.NodeFencing, fence.ReasonNoIdentity); len(s.Message) < 1500 {
		t.Fatalf("the message is short: %s", s.Message)
	}
	found := 0
	for _, note := range w.notes {
		_, text, _ := strings.Cut(note, ": ")
		if len(text) > 1024 {
			t.Errorf("%d bytes: %s", len(text), text)
		}
		if strings.HasSuffix(text, "..."+fence.Link(fence.ReasonNoIdentity)) {
			found++
		}
	}
	if found != 2 {
		t.Errorf("%d events link to the reason: %q", found, w.notes)
	}
}
