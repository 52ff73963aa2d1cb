package apply

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var errNo = errors.New("a policy says no")

// refuse makes the API server refuse writes, like "delete Service/v", also in dry runs.
func (f *fixture) refuse(writes ...string) {
	no := func(o client.Object) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: fakeapi.KindOf(o)}, o.GetName(), errNo)
	}
	for _, write := range writes {
		f.before[write], f.before["dry-run "+write] = no, no
	}
}

// goOn reconciles for a while, as the results ask for.
func (f *fixture) goOn(t *testing.T) {
	t.Helper()
	for range 12 {
		f.Must(f.reconcile())
		f.Pass(10 * time.Second)
	}
}

// wantRefused wants a status that shows the refusal of one object.
func (f *fixture) wantRefused(name string) {
	f.Helper()
	s := f.rollout().Status
	if s.Phase == "Applied" || len(s.Refused) != 1 || s.Refused[0].Name != name || !strings.Contains(s.Refused[0].Message, "a policy says no") || !strings.Contains(s.Message, "a policy says no") {
		f.Fatalf("the roll-out is %+v", s)
	}
	if events := f.Events.About("Warning Refused "); len(events) != 1 || !strings.Contains(events[0], "a policy says no") {
		f.Fatalf("events %q", f.Events.About())
	}
}

// Regression: the old Service was deleted before its successor was admitted, and nothing else was done.
func TestRefusedReplacementDeletesNothing(t *testing.T) {
	for _, write := range []string{"create Service/v", "delete Service/v"} {
		t.Run(write, func(t *testing.T) {
			f := newFixture(t, netOne, serviceOf("v"), serviceOf("w"))
			before := f.service("v").UID
			f.refuse(write)
			f.goOn(t)
			if s := f.service("v"); s == nil || s.UID != before {
				t.Fatalf("got %+v", s)
			}
			f.wantService(serviceOf("w", headlessOn(netOne)))
			f.wantRefused("v")
			clear(f.before)
			f.goOn(t)
			f.wantService(serviceOf("v", headlessOn(netOne)))
			f.wantApplied()
			if refused := f.rollout().Status.Refused; refused != nil {
				t.Errorf("still refused: %+v", refused)
			}
		})
	}
}

// A webhook may deny with the code of a conflict, after which no event follows.
func TestDenialWithTheCodeOfAConflictStopsNoOther(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	no := func(o client.Object) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: `admission webhook "w" denied the request: a policy says no`}}
	}
	f.before["create Service/v"] = no
	f.goOn(t)
	f.wantRefused("v")
	f.restart()
	f.choose(netTwo)
	f.goOn(t)
	must.Equal(t, f.rollout().Status.Servers.Network, "", "servers do not leave the network")
}

func TestRefusedChangeInPlaceIsReported(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v", headlessOn(netTwo)))
	f.refuse("patch Service/v")
	f.goOn(t)
	f.wantRefused("v")
	clear(f.before)
	f.goOn(t)
	f.wantApplied()
}

// The policy comes between the dry run and the deletion.
func TestRefusedRecreationIsRetriedWhileOtherWorkGoesOn(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"))
	f.refuse("create Service/v")
	delete(f.before, "dry-run create Service/v")
	f.goOn(t)
	must.True(t, f.service("v") == nil && f.rollout().Status.Replacing != "", "got %+v", f.rollout().Status)
	f.wantRefused("v")
	f.choose(netTwo)
	f.goOn(t)
	if got := f.rollout().Status; got.Servers.Network != "" {
		t.Fatalf("servers do not leave the network: %+v", got)
	}
	clear(f.before)
	f.restart()
	f.goOn(t)
	must.True(t, f.service("v") != nil && f.rollout().Status.Replacing == "", "got %+v", f.rollout().Status)
}

func TestRefusedClientAndTemplateAreReported(t *testing.T) {
	for write, name := range map[string]string{"patch DaemonSet/longhorn-csi-plugin": "longhorn-csi-plugin", "delete Pod/csi": "csi"} {
		t.Run(write, func(t *testing.T) {
			f := newFixture(t, multus.Attachment{})
			f.refuse(write)
			f.choose(netOne)
			for range 6 {
				f.Must(f.reconcile())
				f.Pass(10 * time.Second)
				f.changeDaemonSet(func(ds *appsv1.DaemonSet) {
					ds.Status.ObservedGeneration = ds.Generation
					if ds.Generation > 0 {
						ds.Annotations[appsv1.DeprecatedTemplateGeneration] = "2"
					}
				})
			}
			f.wantRefused(name)
		})
	}
}

// Regression: a record that can't be read stopped the roll-out without a word.
func TestMalformedRecordIsReportedAndKept(t *testing.T) {
	for field, garble := range map[string]func(*v1alpha1.NetworkRolloutStatus){
		"clients.network": func(s *v1alpha1.NetworkRolloutStatus) { s.Clients.Network = "garbage" },
		"replacing":       func(s *v1alpha1.NetworkRolloutStatus) { s.Replacing = "garbage" },
	} {
		t.Run(field, func(t *testing.T) {
			f := newFixture(t, netOne, serviceOf("v", headlessOn(netTwo)))
			testkit.Change(f.Bench, names.Namespace, longhorn.Name, func(r *v1alpha1.NetworkRollout) { garble(&r.Status) })
			f.comeToRest()
			s := f.rollout().Status
			if s.Phase != "Invalid" || !strings.Contains(s.Message, "status."+field+" of NetworkRollout longhorn") || len(f.Events.About("Warning Malformed ")) != 1 {
				t.Fatalf("the roll-out is %+v, events %q", s, f.Events.About())
			}
			wrote := slices.DeleteFunc(f.Client.Wrote(), func(text string) bool { return strings.Contains(text, " Setting/") })
			must.Equal(t, wrote, []string{"update/status NetworkRollout/longhorn"})
			testkit.Change(f.Bench, names.Namespace, longhorn.Name, func(r *v1alpha1.NetworkRollout) {
				r.Status.Clients.Network, r.Status.Replacing = netOne.String(), ""
			})
			f.comeToRest()
			f.wantApplied()
		})
	}
}

const toleration = "a=b:NoSchedule"

// tolerates reports whether the CSI plugin's template has the toleration.
func (f *fixture) tolerates() bool {
	return slices.ContainsFunc(f.daemonSet().Spec.Template.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "a" })
}

// Regression: with many refused Services one was always due, and its refusal kept each look from other work.
func TestDueRefusalDelaysNoComponent(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v"), setting(catalog.TaintToleration, toleration))
	f.refuse("create Service/v")
	for range 4 {
		f.Must(f.reconcile())
		f.Pass(2 * mostRefusal / 3)
	}
	must.True(t, f.tolerates(), "the template is not written; the roll-out is %+v", f.rollout().Status)
}

// Regression: a deleted Service with a finalizer of others kept each look from reports and from other work.
func TestTerminatingServiceDelaysNoComponent(t *testing.T) {
	f := newFixture(t, netOne, serviceOf("v", func(s *corev1.Service) { s.Finalizers = []string{"example.io/theirs"} }))
	for range 4 {
		f.Must(f.reconcile())
	}
	must.True(t, f.rollout().Status.Replacing != "" && f.service("v").DeletionTimestamp != nil, "the Service does not terminate: %+v", f.rollout().Status)
	f.Must(f.Create(t.Context(), setting(catalog.TaintToleration, toleration)))
	for range 4 {
		f.Must(f.reconcile())
	}
	must.True(t, f.tolerates(), "the template is not written")
}

// Regression: a live list of networks that failed once left the roll-out without a next look.
func TestFailedLiveListOfNetworksIsRetried(t *testing.T) {
	f := newFixture(t, netOne)
	f.comeToRest()
	live := f.API.Client()
	live.Reading = func(o runtime.Object) error {
		if o.GetObjectKind().GroupVersionKind().Group == reads.NetworkKind.Group {
			return errNo
		}
		return nil
	}
	f.r.Live = reads.NewReader(names, live, live)
	f.choose(netTwo)
	for range 3 {
		result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
		must.True(t, err == nil && result.RequeueAfter > 0, "next look in %s, %v", result.RequeueAfter, err)
	}
}
