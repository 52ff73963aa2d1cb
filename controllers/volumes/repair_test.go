package volumes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	names  = objects.Longhorn
	netOne = objects.Network("one", "lhnet1")
	noon   = testkit.Noon
)

const (
	wrong    = `server pod share-manager-v asks for network "", but its Service uses "kube-system/one@lhnet1"`
	repaired = "Normal Repaired: server pod share-manager-v was restarted: " + wrong + ", and no started workload uses the volume"
)

// fixture is the controller over a fake API.
type fixture struct {
	*testkit.Bench
	r    *Reconciler
	uids int
}

// newFixture has volume v, which is attached to node-1 and whose headless Service is on network one.
func newFixture(t *testing.T, more ...client.Object) *fixture {
	t.Helper()
	indexes := fakeapi.Indexes{fakeapi.PodsByNode()}
	testkit.Must(t, reads.IndexClaims(t.Context(), &indexes))
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), indexes, &longhorn.ShareManager{})
	f := &fixture{Bench: testkit.NewBench(t, api, append([]client.Object{
		objects.Record(netOne), objects.Headless("v", netOne), objects.LonghornVolume("v", "node-9", objects.RWX),
		objects.Volume("pv-by-hand", names.Driver, "v", "data", objects.Shared), objects.Attachment("pv-by-hand", "node-1", names.Driver),
		&longhorn.ShareManager{ObjectMeta: objects.Here("v")},
	}, more...)...)}
	f.r = &Reconciler{
		Names: names, ClusterDomain: "cluster.local", Client: f.Client, Live: reads.NewReader(names, f.Client, f.Client), API: f.Client,
		Events: f.Events, Clock: f.Clock, Log: f.Log, repairs: map[string]repair{},
	}
	return f
}

func (f *fixture) reconcile() time.Duration {
	f.Helper()
	return testkit.Value[ctrl.Result](f)(f.r.Reconcile(f.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: names.Namespace, Name: "v"}})).RequeueAfter
}

// mustBe reconciles, and compares when to look again, the server pod that is left, and the events.
func (f *fixture) mustBe(after time.Duration, server types.UID, notes ...string) {
	f.Helper()
	if got := f.reconcile(); got != after || f.serverUID() != server {
		f.Fatalf("again after %v, want %v; server %q, want %q", got, after, f.serverUID(), server)
	}
	if got := f.Events.Notes(); !slices.Equal(got, notes) {
		f.Fatalf("got events %q, want %q", got, notes)
	}
}

func change[T any, P interface {
	*T
	client.Object
}](f *fixture, name string, how func(P)) {
	f.Helper()
	testkit.Change(f.Bench, names.Namespace, name, how)
}

func (f *fixture) service() *corev1.Service {
	f.Helper()
	return testkit.Get[corev1.Service](f, f.API, names.Namespace, "v")
}

// server is the server pod of volume v.
func server(changes ...func(*corev1.Pod)) *corev1.Pod { return objects.ServerPod("v", changes...) }

func asksFor(networks string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[multus.NetworksAnnotation] = networks }
}

func readySince(at time.Time) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func reportsAddress(pod *corev1.Pod) {
	pod.Annotations[multus.NetworkStatusAnnotation] = objects.NetworkStatus(netOne, "192.168.0.3")
}

// user is a pod on node-1 that uses volume v.
func user(changes ...func(*corev1.Pod)) *corev1.Pod {
	return objects.With(objects.Pod("default", "web-0", "node-1", "data"), changes...)
}

func sandbox(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status, LastTransitionTime: metav1.NewTime(noon)}}
	}
}

func ran(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(noon)}}}}
}

// serverUID names the present server pod, "" is none.
func (f *fixture) serverUID() types.UID {
	f.Helper()
	if pod := testkit.Get[corev1.Pod](f, f.API, names.Namespace, "share-manager-v"); pod != nil {
		return pod.UID
	}
	return ""
}

// recreate the server pod, as Longhorn does. It returns the new pod's UID.
func (f *fixture) recreate(changes ...func(*corev1.Pod)) types.UID {
	f.Helper()
	f.uids++
	uid := types.UID(fmt.Sprint("uid-again-", f.uids))
	f.Must(f.Create(f.Context(), server(append(changes, func(pod *corev1.Pod) { pod.UID = uid })...)))
	return uid
}

func TestServerOffItsServicesNetworkIsRestarted(t *testing.T) {
	f := newFixture(t, server())
	f.mustBe(0, "", repaired)
	f.mustBe(0, f.recreate(asksFor(netOne.String())), repaired)
}

func TestServerOfAUsedVolumeIsNotRestarted(t *testing.T) {
	elsewhere := func(pod *corev1.Pod) { pod.Spec.NodeName = "node-2" }
	for name, test := range map[string]struct {
		user      *corev1.Pod
		restarted bool
	}{
		"one that runs":                               {user: user(sandbox("True"), ran)},
		"one whose sandbox was just made":             {user: user(sandbox("True"))},
		"one that crashes":                            {user: user(sandbox("True"), ran)},
		"one whose sandbox has died, or whose node":   {user: user(sandbox("False"), ran)},
		"one that an old kubelet runs":                {user: user(ran)},
		"one that terminates":                         {user: user(sandbox("True"), func(pod *corev1.Pod) { pod.Finalizers = []string{"x/y"} })},
		"one that waits to mount":                     {user: user(sandbox("False")), restarted: true},
		"one that no kubelet has started":             {user: user(), restarted: true},
		"one that has ended":                          {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), restarted: true},
		"one that uses another volume":                {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }), restarted: true},
		"one on a node without the attachment":        {user: user(sandbox("True"), ran, elsewhere), restarted: true},
		"one of another namespace, of the same claim": {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Namespace = "other" }), restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(), test.user)
			if len(test.user.Finalizers) > 0 {
				f.Must(f.Delete(t.Context(), test.user))
			}
			if test.restarted {
				f.mustBe(0, "", repaired)
				return
			}
			for range 2 { // reported once
				f.mustBe(inUseRetry, "uid-1", "Warning OutOfLine: "+wrong+"; server pod share-manager-v is restarted when no started workload uses the volume: pod default/web-0 does")
			}
			f.Must(f.Get(t.Context(), client.ObjectKeyFromObject(test.user), test.user))
			test.user.Finalizers = nil
			f.Must(f.Update(t.Context(), test.user))
			f.Must(client.IgnoreNotFound(f.Delete(t.Context(), test.user)))
			if f.reconcile(); f.serverUID() != "" {
				t.Fatal("the server is not restarted although no workload uses the volume")
			}
		})
	}
}

func TestServerIsNotRestartedInVain(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		said   string
	}{
		"it opts out": {
			func(pod *corev1.Pod) { pod.Annotations[rwx.OptOutAnnotation] = "true" },
			wrong + ": opted out: annotation fairlead.io/opt-out keeps network kube-system/one@lhnet1 off",
		},
		"it is on the host network": {
			func(pod *corev1.Pod) { pod.Spec.HostNetwork = true },
			wrong + ": on the host network: Multus adds no interface to pods on the host network; set hostNetwork to false to join kube-system/one@lhnet1",
		},
		"its networks can't be read": {
			asksFor("[{"),
			wrong + ": networks annotation unreadable: annotation k8s.v1.cni.cncf.io/networks: not a network selection that Multus understands: unexpected end of JSON input",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(test.change))
			for range 3 {
				f.Pass(time.Hour)
				f.mustBe(0, "uid-1", "Warning OutOfLine: "+test.said)
			}
		})
	}
}

func TestCorrectServerIsLeftAlone(t *testing.T) {
	cluster := func(f *fixture) {
		change(f, "v", func(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.1" })
	}
	for name, test := range map[string]struct {
		server *corev1.Pod
		before func(*fixture)
	}{
		"on the network":                         {server: server(asksFor(netOne.String()))},
		"on the network, among others":           {server: server(asksFor("kube-system/x@net1," + netOne.String()))},
		"on two networks of Longhorn":            {server: server(asksFor("kube-system/two@lhnet2," + netOne.String()))},
		"on the cluster network, as its Service": {server: server(), before: cluster},
		"terminating":                            {server: server(func(pod *corev1.Pod) { pod.Finalizers = []string{"x/y"} }), before: func(f *fixture) { f.Must(f.Delete(f.Context(), server())) }},
		"ended":                                  {server: server(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })},
		"without a record": {server: server(), before: func(f *fixture) {
			f.Must(f.Delete(f.Context(), objects.Record(netOne)))
		}},
		"of another volume": {server: server(func(pod *corev1.Pod) { pod.Labels[names.VolumeLabel], pod.OwnerReferences[0].Name = "w", "w" })},
		"with its volume's ShareManager gone too": {server: server(), before: func(f *fixture) {
			f.Must(f.Delete(f.Context(), &longhorn.ShareManager{ObjectMeta: objects.Here("v")}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.server)
			if test.before != nil {
				test.before(f)
			}
			f.mustBe(0, "uid-1")
		})
	}
}

// While the webhooks are away, each new pod is as wrong as the one before.
func TestUselessRestartsAreRepeatedAfterGrowingPauses(t *testing.T) {
	f := newFixture(t, server())
	f.reconcile()
	mustWait := func(after time.Duration, there bool) {
		t.Helper()
		if got := f.reconcile(); got != after || (f.serverUID() != "") != there {
			t.Fatalf("again after %v, want %v; server %q", got, after, f.serverUID())
		}
	}
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		f.recreate()
		mustWait(minutes*time.Minute, true)
		f.Pass(minutes*time.Minute - time.Second)
		mustWait(time.Second, true)
		f.Pass(time.Second)
		mustWait(0, false)
	}
	f.recreate(asksFor(netOne.String()), readySince(noon), reportsAddress) // a useful restart resets the pauses
	f.reconcile()
	f.Must(f.Delete(t.Context(), server()))
	f.recreate()
	mustWait(0, false)
	f.recreate()
	mustWait(firstRetry, true)
}

// After a reboot, a server pod may start before Multus: it requests the network, and never gets it.
func TestServerThatStartedBeforeMultusIsRestarted(t *testing.T) {
	asks := asksFor(netOne.String())
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		user   bool
		after  time.Duration
		server types.UID
	}{
		"idle":                      {server(asks, readySince(noon.Add(-rwx.ReportWithin))), false, 0, ""},
		"Ready for a minute":        {server(asks, readySince(noon.Add(-time.Minute))), false, rwx.ReportWithin - time.Minute, "uid-1"},
		"not Ready":                 {server(asks), false, 0, "uid-1"},
		"it has its address":        {server(asks, readySince(noon.Add(-time.Hour)), reportsAddress), false, 0, "uid-1"},
		"a workload has it mounted": {server(asks, readySince(noon.Add(-time.Hour))), true, inUseRetry, "uid-1"},
		"Multus reports another's only": {server(asks, readySince(noon.Add(-time.Hour)), func(pod *corev1.Pod) {
			pod.Annotations[multus.NetworkStatusAnnotation] = objects.NetworkStatus(objects.Network("two", "lhnet1"), "192.168.0.3")
		}), false, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, c.pod)
			if c.user {
				f.Must(f.Create(t.Context(), user(sandbox(corev1.ConditionTrue))))
			}
			must.Equal(t, f.reconcile(), c.after)
			must.Equal(t, f.serverUID(), c.server)
		})
	}
	// A restart that does not help is repeated after growing pauses.
	f := newFixture(t, server(asks, readySince(noon.Add(-time.Hour))))
	f.reconcile()
	f.recreate(asks, readySince(noon.Add(-time.Hour)))
	must.Equal(t, f.reconcile(), firstRetry)
}

func TestReplacedServerIsNotRestarted(t *testing.T) {
	f := newFixture(t, server())
	var next types.UID
	f.Client.Before = func(fakeapi.Write) error {
		f.Client.Before = nil
		f.Must(f.Delete(t.Context(), server()))
		next = f.recreate(asksFor(netOne.String()))
		return nil
	}
	if after := f.reconcile(); after != 0 || next == "" || f.serverUID() != next || len(f.Events.All())+len(f.r.repairs) != 0 {
		t.Fatalf("again after %v, server %q, events %q, counted %v", after, f.serverUID(), f.Events.Notes(), f.r.repairs)
	}
}

func (f *fixture) shareManager() *longhorn.ShareManager {
	f.Helper()
	return testkit.Get[longhorn.ShareManager](f, f.API, names.Namespace, "v")
}

// Longhorn may write the endpoint between the look and the patch.
func TestChangedEndpointIsNotCorrected(t *testing.T) {
	f := newFixture(t)
	change(f, "v", func(sm *longhorn.ShareManager) { sm.Status.Endpoint = "nfs://10.43.0.9/v" })
	read := f.shareManager()
	read.Status.Endpoint = "nfs://None/v"
	service := testkit.Value[*rwx.Service](t)(f.r.Live.Service(t.Context(), "v"))
	must.Check(t, f.r.correctEndpoint(t.Context(), read, service) != nil, "no error: the patch has no precondition")
	if got := f.shareManager().Status.Endpoint; got != "nfs://10.43.0.9/v" {
		t.Errorf("Longhorn's endpoint is overwritten with %q", got)
	}
}

func TestEndpointFollowsTheService(t *testing.T) {
	for name, test := range map[string]struct{ clusterIP, before, want string }{
		"Longhorn's None":             {corev1.ClusterIPNone, "nfs://None/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"an earlier address":          {corev1.ClusterIPNone, "nfs://10.43.0.1/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"the right endpoint":          {corev1.ClusterIPNone, "nfs://v.longhorn-system.svc.cluster.local/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"empty is Longhorn's to fill": {corev1.ClusterIPNone, "", ""},
		"back to the cluster network": {"10.43.0.1", "nfs://v.longhorn-system.svc.cluster.local/v", "nfs://10.43.0.1/v"},
		"the right cluster IP":        {"10.43.0.1", "nfs://10.43.0.1/v", "nfs://10.43.0.1/v"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			change(f, "v", func(s *corev1.Service) { s.Spec.ClusterIP = test.clusterIP })
			change(f, "v", func(sm *longhorn.ShareManager) { sm.Status.Endpoint = test.before })
			f.reconcile()
			if got := f.shareManager().Status.Endpoint; got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestServiceThatCannotBeHeadlessIsReportedOnce(t *testing.T) {
	f := newFixture(t, server())
	change(f, "v", func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.Type = "10.43.0.1", corev1.ServiceTypeNodePort })
	for range 3 {
		f.mustBe(0, "uid-1", "Warning NotClusterIP: Service v is not of type ClusterIP and can't be headless: the Service is left alone, and the volume stays off network kube-system/one@lhnet1")
	}
}

func TestDeletedVolumeIsForgotten(t *testing.T) {
	f := newFixture(t, server(), user(sandbox("True")))
	f.reconcile()
	f.r.repairs["v"] = repair{times: 3}
	f.Must(f.Delete(t.Context(), &longhorn.ShareManager{ObjectMeta: objects.Here("v")}))
	f.reconcile()
	must.True(t, f.r.reports.Len() == 0 && len(f.r.repairs) == 0, "got %v, %v", f.r.reports.Len(), f.r.repairs)
}
