package validators

import "testing"

// workingPod is Ready, on node-1.
func workingPod() InstanceManagerPod {
	var p InstanceManagerPod
	p.Metadata.Name, p.Spec.NodeName = "instance-manager-1", "node-1"
	p.Status.Conditions = []PodCondition{{"PodScheduled", "True"}, {"Ready", "True"}}
	return p
}

func TestInstanceManagerDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*InstanceManagerPod, *InstanceManagerFacts)
		reason  string
		refused bool
	}{
		"in use": {
			change: func(*InstanceManagerPod, *InstanceManagerFacts) {}, reason: ReasonInstanceManagerInUse, refused: true,
		},
		"runs nothing for an attached volume": {
			change: func(_ *InstanceManagerPod, f *InstanceManagerFacts) { f.Instance, f.Volume = "", "" }, reason: ReasonIdle,
		},
		"pod not Ready": {
			change: func(p *InstanceManagerPod, _ *InstanceManagerFacts) { p.Status.Conditions[1].Status = "False" }, reason: ReasonMayBeReplaced,
		},
		"pod without conditions": {
			change: func(p *InstanceManagerPod, _ *InstanceManagerFacts) { p.Status.Conditions = nil }, reason: ReasonMayBeReplaced,
		},
		"pod terminating": {
			change: func(p *InstanceManagerPod, _ *InstanceManagerFacts) {
				p.Metadata.DeletionTimestamp = "2026-01-01T12:00:00Z"
			}, reason: ReasonMayBeReplaced,
		},
		"node not Ready": {
			change: func(_ *InstanceManagerPod, f *InstanceManagerFacts) { f.NodeReady = false }, reason: ReasonMayBeReplaced,
		},
		"instance manager gone, being deleted or not running": {
			change: func(_ *InstanceManagerPod, f *InstanceManagerFacts) { f.Running = false }, reason: ReasonMayBeReplaced,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod, facts := workingPod(), InstanceManagerFacts{Running: true, NodeReady: true, Instance: "pvc-a-e-0", Volume: "pvc-a"}
			test.change(&pod, &facts)
			v := ValidateInstanceManagerDeletion(pod, facts)
			if v.Reason != test.reason || (len(v.Problems) > 0) != test.refused {
				t.Fatalf("got %q, %v", v.Reason, v.Problems)
			}
			const says = "instance manager instance-manager-1 on node-1 runs pvc-a-e-0 of volume pvc-a, which is attached; the pod is restarted once it runs no engine or replica. " +
				"To restart it now, delete the pod with an account of your own"
			if test.refused && v.Problems[0].Detail != says {
				t.Errorf("got  %s\nwant %s", v.Problems[0].Detail, says)
			}
		})
	}
}
