package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-io/fairlead/cluster"
)

func TestProgressIsWrittenEveryFiveSeconds(t *testing.T) {
	f := newFixture(t, netOne)
	f.comeToRest()
	nodes := func(n int32) {
		var ds appsv1.DaemonSet
		f.must(f.store.Get(t.Context(), cluster.DaemonSetKey(profile), &ds))
		ds.Status.DesiredNumberScheduled = n
		f.must(f.store.Status().Update(t.Context(), &ds))
	}
	nodes(2)
	result, err := f.r.Reconcile(t.Context(), ctrl.Request{})
	f.must(err)
	if got := f.rollout().Status.Clients.Total; got != 1 || result.RequeueAfter != progressEvery {
		t.Fatalf("%d clients are reported at once; the next look is in %s", got, result.RequeueAfter)
	}
	f.r.Clock.(*clocktesting.FakePassiveClock).SetTime(noon.Add(progressEvery))
	f.must(f.reconcile())
	if got := f.rollout().Status.Clients.Total; got != 2 {
		t.Fatalf("%d clients are reported after %s", got, progressEvery)
	}
	// Another network to change to is news.
	f.choose(netTwo)
	f.must(f.reconcile())
	f.must(f.reconcile())
	if got := f.rollout().Status.Desired; got != netTwo.String() {
		t.Fatalf("the network that is wanted is %q", got)
	}
}
