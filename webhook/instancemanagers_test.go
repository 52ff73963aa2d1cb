package webhook

import (
	"context"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// deletionReview is of a pod with a Ready condition.
func deletionReview(ready string) string {
	return reviewOf(podKind, `"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"longhorn-system","name":"instance-manager-1","operation":"DELETE",`+
		`"object":null,"oldObject":{"metadata":{"name":"instance-manager-1"},"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
}

// serving is an instance manager on node-1 that runs the engine of an attached volume.
func serving() []client.Object {
	manager := &longhorn.InstanceManager{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "instance-manager-1"}}
	manager.Status.CurrentState = "running"
	manager.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-a-e-0": {Status: longhorn.InstanceProcessStatus{State: "running"}}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	return []client.Object{manager, node, attachedVolume("pvc-a", "node-1", "web-0")}
}

func TestInstanceManagerInUseIsNotDeleted(t *testing.T) {
	for _, duty := range []config.Switch{config.Apply, config.Guard} {
		h := newRig(t, fakeClient(t, serving()...), func(_ *config.Configuration, p *Profile) { p.Duties.Settings = duty })
		response := h.ask(t, deletionsPath, deletionReview("True"))
		if response.Allowed || response.Result.Code != http.StatusForbidden || !strings.Contains(response.Result.Message, "runs pvc-a-e-0 of volume pvc-a, which is attached") {
			t.Errorf("%s: got %+v", duty, response.Result)
		}
		if got := response.AuditAnnotations["decision"]; !strings.HasPrefix(got, "denied: instance manager in use (instance manager instance-manager-1 on node-1 runs ") {
			t.Errorf("%s: audit %q", duty, got)
		}
	}
}

func TestInstanceManagerThatIsNotInUseIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		ready, audit string
		objects      []client.Object
	}{
		"idle":          {"True", "allowed: instance manager idle", serving()[:2]},
		"node lost":     {"True", "allowed: not running or not ready", []client.Object{serving()[0], serving()[2]}},
		"pod not Ready": {"False", "allowed: not running or not ready", serving()},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, deletionsPath, deletionReview(test.ready))
			if got := response.AuditAnnotations["decision"]; !response.Allowed || got != test.audit {
				t.Errorf("got %+v, audit %q", response, got)
			}
		})
	}
}

// An answer that is no review is for the failure policy, which lets the deletion pass.
func TestInstanceManagerDeletionFailsOpen(t *testing.T) {
	live := interceptor.NewClient(fakeClient(t, serving()...), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errDown
		},
	})
	if status, body := newRig(t, live).post(deletionsPath, deletionReview("True")); status != http.StatusInternalServerError {
		t.Errorf("got %d %s", status, body)
	}
	w := validateInstanceManagerDeletions(storage.Longhorn())
	if *w.FailurePolicy != admissionregistrationv1.Ignore || *w.TimeoutSeconds > 3 {
		t.Errorf("policy %s, timeout %d s", *w.FailurePolicy, *w.TimeoutSeconds)
	}
}

func TestInstanceManagerDeletionsAreNarrow(t *testing.T) {
	w := validateInstanceManagerDeletions(storage.Longhorn())
	if len(w.Rules) != 1 || len(w.Rules[0].Operations) != 1 || w.Rules[0].Operations[0] != admissionregistrationv1.Delete || strings.Join(w.Rules[0].Resources, " ") != "pods" {
		t.Errorf("rules %+v", w.Rules) // evictions are pods/eviction
	}
	if w.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != "longhorn-system" || w.ObjectSelector.MatchLabels["longhorn.io/component"] != "instance-manager" {
		t.Errorf("namespace %v, objects %v", w.NamespaceSelector, w.ObjectSelector)
	}
	if want := "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':longhorn-service-account'"; w.MatchConditions[0].Expression != want {
		t.Errorf("got  %s\nwant %s", w.MatchConditions[0].Expression, want)
	}
}
