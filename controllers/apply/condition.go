package apply

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
)

func appliedCondition(s plan.SettingPlan, generation int64, now time.Time) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse,
		Reason: string(s.Phase), Message: kit.Clip(s.Message, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
	}
	if s.Applied {
		condition.Status = metav1.ConditionTrue
	}
	return condition
}

// maxMessage is the limit of a condition's message in the API.
const maxMessage = 32768
