package invariants

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

func TestRestartsAreCountedByComponent(t *testing.T) {
	w := newWorld(t, "")
	w.writes = nil
	created := func(name string) {
		pod := &corev1.Pod{ObjectMeta: at(name)}
		w.write(lhuser, "create", pod)
	}
	for _, name := range []string{"instance-manager-1", "instance-manager-2", "instance-manager-1", "share-manager-v", "other"} {
		created(name)
	}
	refused := w.writes[0]
	refused.Code = 403
	got, err := CountRestarts(append([]sandbox.Write{refused}, w.writes...))
	if want := (Restarts{"instance manager": 2, ShareManager: 1}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("counted %v, %v; want %v", got, err, want)
	}
	if kinds := got.MoreThan(1); !reflect.DeepEqual(kinds, []string{"instance manager"}) {
		t.Errorf("more than once: %v", kinds)
	}
}
