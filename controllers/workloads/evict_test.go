package workloads

import (
	"fmt"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// refusals are answers of the API server to an eviction, in Kubernetes 1.37.
var refusals = map[string]*apierrors.StatusError{
	"budget": apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10),
	// pkg/registry/core/pod/storage/eviction.go: the status has no reason.
	"two budgets": status(http.StatusInternalServerError, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."),
	// apiserver/pkg/admission/plugin/webhook/errors: code and reason are the webhook's.
	"denying webhook": status(http.StatusForbidden, metav1.StatusReasonForbidden, `admission webhook "no.example.io" denied the request: not now`),
	"failing webhook": apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "no.example.io": connection refused`)),
	// apiserver/pkg/admission/plugin/namespace/lifecycle.
	"ending namespace": endingNamespace(),
}

func status(code int32, reason metav1.StatusReason, message string) *apierrors.StatusError {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func endingNamespace() *apierrors.StatusError {
	err := apierrors.NewForbidden(corev1.Resource("pods"), "web-0", fmt.Errorf("unable to create new content in namespace default because it is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace default is being terminated", Field: "metadata.namespace",
	})
	return err
}

// An eviction that the API server refuses gives back the brake and the turn, is reported to the pod's owner,
// and delays no other pod.
func TestRefusedEvictionsPauseNothing(t *testing.T) {
	const asked = alwaysAllowed + 5
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			w := atRest(t, stateful(asked+2))
			w.slot("s1-0").owner = w.slot("s0-0").owner // the next of this controller
			for _, s := range w.slots[:asked] {
				s.refused = refusal
			}
			w.slot("s1-0").refused = nil
			w.newSandbox("node-1")
			for range 3 {
				w.wantRestarted("s1-0", fmt.Sprintf("s%d-0", asked), fmt.Sprintf("s%d-0", asked+1))
				w.Step(max(budgetRetry, refusedRetry))
			}
			must.True(t, w.rollout().Annotations[rwx.RestartsAnnotation] == "", "refused evictions paused restarts")
			w.wantReasons(w.slot("s0-0").pod.uid, "DeadMount") // once
			if !apierrors.IsTooManyRequests(refusal) {
				note := "; the API server refuses to evict the pod. Remove the cause, or delete the pod yourself: " + refusal.Error()
				must.Equal(t, len(w.Events.About(note)), asked-1, "%q", w.Events.Notes())
				w.wantMetric(asked-1, "fairlead_dead_mounts", rwx.ReasonRefused)
			}
			for _, s := range w.slots {
				s.refused = nil
			}
			w.Step(max(budgetRetry, refusedRetry))
			w.reconcile()
			must.True(t, len(w.evicted) > 3, "no pod was evicted after the refusals ended")
			w.wantMetric(0, "fairlead_dead_mounts", rwx.ReasonRefused)
		})
	}
}

// An eviction without an answer may have happened. It does not count for the brake.
func TestLostAnswersPauseNothing(t *testing.T) {
	w := atRest(t, stateful(alwaysAllowed+5))
	w.failing = "lost"
	w.newSandbox("node-1")
	for range 5 {
		w.Step(turn)
		w.wantRestarted()
	}
	must.True(t, w.rollout().Annotations[rwx.RestartsAnnotation] == "", "lost answers paused restarts")
}
