package rollout

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
)

func appliedCondition(step settings.Step, generation int64, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse,
		Reason: string(step.Phase), Message: step.Message,
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	if step.Applied {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

func inDangerZone(name string) bool {
	d, known := settings.Lookup(name)
	return known && d.DangerZone
}
