package webhook

import (
	"net/http"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
)

// deletionReview is of a pod with a Ready condition.
func deletionReview(ready string) string {
	return reviews.Of(reviews.Pod, `"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"longhorn-system","name":"instance-manager-1","operation":"DELETE",`+
		`"object":null,"oldObject":{"metadata":{"name":"instance-manager-1"},"spec":{"nodeName":"node-1"},"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`)
}

// serving is an instance manager on node-1 that runs the engine of an attached volume.
func serving() []client.Object {
	manager := &longhorn.InstanceManager{ObjectMeta: objects.Here("instance-manager-1")}
	manager.Status.CurrentState = "running"
	manager.Status.InstanceEngines = map[string]longhorn.InstanceProcess{"pvc-a-e-0": {Status: longhorn.InstanceProcessStatus{State: "running"}}}
	return []client.Object{manager, objects.Node("node-1"), attachedVolume("pvc-a")}
}

func TestInstanceManagerInUseIsNotDeleted(t *testing.T) {
	for _, duty := range []config.Switch{config.Apply, config.Guard} {
		h := newRig(t, fakeClient(t, serving()...), func(p *Longhorn) { p.Duties.Settings = duty })
		response := h.ask(t, deletionsPath, deletionReview("True"))
		must.Check(t, !response.Allowed && response.Result.Code == http.StatusForbidden && strings.Contains(response.Result.Message, "runs pvc-a-e-0 of volume pvc-a, which is attached"),
			"%s: got %+v", duty, response.Result)
		got := response.AuditAnnotations["decision"]
		must.Check(t, strings.HasPrefix(got, "denied: instance manager in use (instance manager instance-manager-1 on node-1 runs "), "%s: audit %q", duty, got)
	}
}

func TestUnusedInstanceManagerIsDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		ready, audit string
		objects      []client.Object
	}{
		"idle":          {"True", "allowed: instance manager idle", serving()[:2]},
		"node lost":     {"True", "allowed: not running or not ready", []client.Object{serving()[0], serving()[2]}},
		"pod not Ready": {"False", "allowed: not running or not ready", serving()},
	} {
		response := newRig(t, fakeClient(t, test.objects...)).ask(t, deletionsPath, deletionReview(test.ready))
		got := response.AuditAnnotations["decision"]
		must.Check(t, response.Allowed && got == test.audit, "%s: got %+v, audit %q", name, response, got)
	}
}

// The failure policy lets the deletion pass.
func TestInstanceManagerDeletionFailsOpen(t *testing.T) {
	status, body := newRig(t, unreadable(fakeClient(t))).post(deletionsPath, deletionReview("True"))
	must.Check(t, status == http.StatusInternalServerError, "got %d %s", status, body)
}
