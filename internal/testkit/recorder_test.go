package testkit

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestRecorderKeepsAcceptedEvents(t *testing.T) {
	var r Recorder
	r.Eventf(objects.Node("a"), nil, corev1.EventTypeNormal, "Seen", "Look", "%d times", 2)
	r.Eventf(objects.Node("a"), nil, corev1.EventTypeNormal, "Long", "Look", "%s", strings.Repeat("x", maxNote+1))
	if got, want := r.Notes(), []string{"Normal Seen: 2 times"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := r.About("Seen", "Node/a"); len(got) != 1 || len(r.About("Seen", "Pod/a")) != 0 {
		t.Errorf("got %q", got)
	}
}
