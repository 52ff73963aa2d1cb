package validators

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/planner"
)

func TestInstanceManagerDeletion(t *testing.T) {
	const inUse = "metadata.name: Forbidden: instance manager instance-manager-1 on node-1 runs pvc-a-e-0 of volume pvc-a, which is attached; the pod is restarted when the instance manager runs no engine or replica. " +
		"To restart the pod now, delete it with your own account"
	type pod = InstanceManagerPod
	type facts = planner.InstanceManagerFacts
	for name, test := range map[string]struct {
		change   func(*pod, *facts)
		reason   string
		problems []string
	}{
		"in use":                       {func(*pod, *facts) {}, ReasonInstanceManagerInUse, []string{inUse}},
		"no attached volume":           {func(_ *pod, f *facts) { f.Instance, f.Volume = "", "" }, ReasonIdle, nil},
		"pod not Ready":                {func(p *pod, _ *facts) { p.Status.Conditions[1].Status = "False" }, ReasonMayBeReplaced, nil},
		"pod without conditions":       {func(p *pod, _ *facts) { p.Status.Conditions = nil }, ReasonMayBeReplaced, nil},
		"pod terminating":              {func(p *pod, _ *facts) { p.Metadata.DeletionTimestamp = "2026-01-01T12:00:00Z" }, ReasonMayBeReplaced, nil},
		"node not Ready":               {func(_ *pod, f *facts) { f.NodeReady = false }, ReasonMayBeReplaced, nil},
		"instance manager not running": {func(_ *pod, f *facts) { f.Running = false }, ReasonMayBeReplaced, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var p pod
			p.Metadata.Name, p.Spec.NodeName = "instance-manager-1", "node-1"
			p.Status.Conditions = []PodCondition{{"PodScheduled", "True"}, {"Ready", "True"}}
			f := facts{Running: true, NodeReady: true, Instance: "pvc-a-e-0", Volume: "pvc-a"}
			test.change(&p, &f)
			checkVerdict(t, ValidateInstanceManagerDeletion(p, f), test.reason, test.problems, nil)
		})
	}
}
