package kit

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestEarliestDelayIgnoresNone(t *testing.T) {
	for want, delays := range map[time.Duration][]time.Duration{0: {0, -1}, 1: {0, 3, 1, 2}, 5: {5}} {
		must.Equal(t, Earliest(delays...), want, "%v", delays)
	}
}

func TestBackoffDoublesUpToItsLimit(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: 1, 1: 1, 2: 2, 3: 4, 4: 6, 1000: 6} {
		if got := Backoff(time.Second, 6*time.Second, failures); got != want*time.Second {
			t.Errorf("after %d failures: got %s, want %ds", failures, got, want)
		}
	}
}

func TestReportIsRepeatedOnlyWhenItChanges(t *testing.T) {
	var o Once[string, string]
	report := func(key, value string, want bool) {
		t.Helper()
		if got := o.IsNew(key, value); got != want {
			t.Errorf("%s=%s is new: %t, want %t", key, value, got, want)
		}
	}
	report("a", "", true)
	report("a", "", false)
	report("a", "x", true)
	report("a", "x", false)
	report("b", "x", true)
	o.Forget("a")
	report("a", "x", true)
	report("b", "x", false)
	o.ForgetAll(func(key string) bool { return key == "b" })
	report("b", "x", true)
	report("a", "x", false)
}

func TestNoteIsCutBetweenCharacters(t *testing.T) {
	must.Equal(t, Note("short"), "short")
	if whole := strings.Repeat("x", MaxNote); Note(whole) != whole {
		t.Error("a note that fits was cut")
	}
	for shift := range 3 { // the limit falls into each byte of a character once
		got := Note(strings.Repeat("x", shift) + strings.Repeat("é", MaxNote))
		if len(got) > MaxNote || len(got) < MaxNote-4 || !utf8.ValidString(got) || !strings.HasSuffix(got, "é...") {
			t.Errorf("%d bytes, valid: %t, end %q", len(got), utf8.ValidString(got), got[len(got)-8:])
		}
	}
}

func TestNoNameIsNoRequest(t *testing.T) {
	if got := Request("a", "", "b"); len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
		t.Errorf("got %v", got)
	}
	if got := RequestIn("ns", "a"); len(got) != 1 || got[0].String() != "ns/a" {
		t.Errorf("got %v", got)
	}
}

func TestStartMakesOneRequest(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := AtStart(Request("a")[0]).Start(t.Context(), queue); err != nil || queue.Len() != 1 {
		t.Errorf("%d requests, error %v", queue.Len(), err)
	}
}
