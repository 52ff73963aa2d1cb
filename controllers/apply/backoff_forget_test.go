package apply

import (
	"context"
	"testing"
)

// Longhorn applies a value itself if nothing is attached. Then Fairlead has no work, and the change of before is as it was.
func TestRevertedValueIsNotHeldBack(t *testing.T) {
	w := newWorld(t, setting(class, ""))
	w.comeToRest()
	w.setSystem(class, "high")
	w.comeToRest()
	w.setSystemOpen(class, "")
	d := w.deployment()
	d.Spec.Template.Spec.PriorityClassName = ""
	w.Must(w.API.Update(context.Background(), d))
	w.step()
	before := w.Clock.Now()
	w.setSystemOpen(class, "high")
	w.step()
	if waits := w.status(class).Blockers; len(waits) > 0 {
		t.Errorf("the value waits for %v", waits)
	}
	w.comeToRest()
	if got := w.deployment().Spec.Template.Spec.PriorityClassName; got != "high" || w.Clock.Now().Sub(before) > pauses[0] {
		t.Errorf("after %s the Deployment has class %q", w.Clock.Now().Sub(before), got)
	}
}
