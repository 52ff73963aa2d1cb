package workloads

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestRecordForgetsDeadMountsThatWereMended(t *testing.T) {
	w := atRest(t, spread(2))
	w.slot("s0-0").optOut, w.slot("s0-0").pod.optOut = true, true
	w.publishWorkload(w.slot("s0-0").pod)
	w.newSandbox("node-1", "node-2")
	w.reconcile()
	recorded := w.rollout().Status.DeadMounts
	must.True(t, len(recorded) == 1 && recorded[0].Pod == "default/s0-0", "got %v", recorded)
	version := w.rollout().ResourceVersion
	w.Step(leftDead)
	w.reconcile()
	must.Equal(t, w.rollout().ResourceVersion, version, "the same dead mounts are written once")
	w.restart()
	w.reconcile()
	must.Equal(t, w.rollout().ResourceVersion, version, "another leader finds the same")
	w.slot("s0-0").optOut, w.slot("s0-0").pod.optOut = false, false
	w.publishWorkload(w.slot("s0-0").pod)
	w.Step(leftDead + time.Second)
	w.reconcile()
	must.Equal(t, len(w.rollout().Status.DeadMounts), 0, "%v", w.rollout().Status.DeadMounts)
}

func TestDeadMountsOfOneNodeAreReplaced(t *testing.T) {
	of := func(node string, pods ...string) (dead []v1alpha1.DeadMount) {
		for _, pod := range pods {
			dead = append(dead, v1alpha1.DeadMount{Pod: pod, Node: node})
		}
		return dead
	}
	names := func(dead []v1alpha1.DeadMount) (names []string) {
		for _, d := range dead {
			names = append(names, d.Node+"/"+d.Pod)
		}
		return names
	}
	var many []string
	for i := range v1alpha1.MaxListed {
		many = append(many, fmt.Sprintf("p%02d", i))
	}
	recorded := slices.Concat(of("a", "1"), of("b", "2", "3"))
	for name, test := range map[string]struct {
		recorded, dead, want []v1alpha1.DeadMount
	}{
		"first":                   {nil, of("b", "3", "2"), of("b", "2", "3")},
		"none":                    {nil, nil, nil},
		"unchanged":               {recorded, of("b", "3", "2"), recorded},
		"mended":                  {recorded, nil, of("a", "1")},
		"the last is mended":      {of("b", "2"), nil, nil},
		"others keep a full list": {of("c", many...), of("b", "1"), of("c", many...)},
		"too many of one node":    {of("a", "1"), of("b", many...), slices.Concat(of("a", "1"), of("b", many[:v1alpha1.MaxListed-1]...))},
	} {
		t.Run(name, func(t *testing.T) {
			got := withDeadMounts(test.recorded, "b", test.dead)
			must.True(t, slices.Equal(names(got), names(test.want)) && (got == nil) == (len(test.want) == 0), "got %v, want %v", names(got), names(test.want))
		})
	}
}
