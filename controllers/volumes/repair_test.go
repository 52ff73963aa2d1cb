package volumes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	profile = storage.Longhorn()
	netOne  = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

const (
	wrong    = `server pod share-manager-v asks for network "", its Service is for "kube-system/one@lhnet1"`
	repaired = "Normal Repaired: server pod share-manager-v was restarted: " + wrong + ", and no started workload uses the volume"
)

// fixture is the controller over a fake API.
type fixture struct {
	*testing.T
	client.Client
	r     *Reconciler
	clock *clocktesting.FakePassiveClock
	notes []string
	uids  int
}

type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

var newScheme = sync.OnceValues(cluster.NewScheme)

// newFixture is volume v, its Service headless on network one, attached to node-1.
func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithStatusSubresource(&longhorn.ShareManager{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithInterceptorFuncs(interceptor.Funcs{Delete: deleteOf})
	f := &fixture{T: t, clock: clocktesting.NewFakePassiveClock(noon)}
	f.must(cluster.IndexClaims(t.Context(), indexes{builder}))
	f.Client = builder.Build()
	live := cluster.NewReader(profile, f.Client, f.Client)
	f.r = &Reconciler{
		Profile: profile, ClusterDomain: "cluster.local", Client: f.Client, Live: live, Pods: f.Client,
		Events: recorder{f}, Clock: f.clock, Log: slog.New(slog.DiscardHandler), repairs: map[string]repair{},
	}
	at := metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name}}
	rollout.Status.Recorded, rollout.Status.Clients.Network, rollout.Status.Servers.Network = true, netOne.String(), netOne.String()
	service := &corev1.Service{ObjectMeta: *at.DeepCopy(), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	service.Labels = map[string]string{profile.VolumeLabel: "v"}
	service.Annotations = map[string]string{storage.NetworkAnnotation: netOne.String()}
	volume := &longhorn.Volume{ObjectMeta: *at.DeepCopy(), Spec: longhorn.VolumeSpec{AccessMode: "rwx"}}
	volume.Status.State, volume.Status.CurrentNodeID = "attached", "node-9"
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-by-hand"}}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: profile.Driver, VolumeHandle: "v"}
	pv.Status.Phase = corev1.VolumeBound
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1"}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: profile.Driver, NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv.Name},
	}}
	for _, o := range append([]client.Object{rollout, service, volume, pv, attachment, &longhorn.ShareManager{ObjectMeta: at}}, objects...) {
		f.must(f.Create(t.Context(), o))
	}
	return f
}

// deleteOf does what the fake client does not: a UID is a precondition.
func deleteOf(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	var have corev1.Pod
	if _, ok := o.(*corev1.Pod); ok && options.Preconditions != nil && options.Preconditions.UID != nil {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), &have); err == nil && have.UID != *options.Preconditions.UID {
			return apierrors.NewConflict(corev1.Resource("pods"), o.GetName(), errors.New("the UID is another"))
		}
	}
	return c.Delete(ctx, o, opts...)
}

type recorder struct{ *fixture }

func (r recorder) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	r.notes = append(r.notes, kind+" "+reason+": "+fmt.Sprintf(note, args...))
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) reconcile() time.Duration {
	f.Helper()
	result, err := f.r.Reconcile(f.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: profile.Namespace, Name: "v"}})
	f.must(err)
	return result.RequeueAfter
}

// server is the server pod of volume v, as Longhorn makes it.
func server(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: profile.Namespace, Name: "share-manager-v", UID: "uid-1", Labels: maps.Clone(profile.ServerLabels), Annotations: map[string]string{},
	}}
	pod.Labels[profile.VolumeLabel] = "v"
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "longhorn.io/v1beta2", Kind: "ShareManager", Name: "v", Controller: ptr.To(true)}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func asksFor(networks string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Annotations[storage.NetworksAnnotation] = networks }
}

// user is a pod on node-1 that uses volume v.
func user(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}, Spec: corev1.PodSpec{
		NodeName: "node-1",
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}},
	}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func sandbox(status corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: status, LastTransitionTime: metav1.NewTime(noon)}}
	}
}

func ran(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(noon)}}}}
}

// serverUID is the server pod that there is, "" without one.
func (f *fixture) serverUID() types.UID {
	f.Helper()
	var pod corev1.Pod
	err := f.Get(f.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: "share-manager-v"}, &pod)
	f.must(client.IgnoreNotFound(err))
	return pod.UID
}

func (f *fixture) again(change ...func(*corev1.Pod)) {
	f.Helper()
	f.uids++
	f.must(f.Create(f.Context(), server(append(change, func(pod *corev1.Pod) { pod.UID = types.UID(fmt.Sprint("uid-again-", f.uids)) })...)))
}

func TestAServerOffItsServicesNetworkIsRestarted(t *testing.T) {
	f := newFixture(t, server())
	if after := f.reconcile(); after != 0 || f.serverUID() != "" || !slices.Equal(f.notes, []string{repaired}) {
		t.Fatalf("again after %v, server %q, said %q", after, f.serverUID(), f.notes)
	}
	f.again(asksFor(netOne.String()))
	if after := f.reconcile(); after != 0 || f.serverUID() == "" || len(f.notes) != 1 {
		t.Fatalf("again after %v, server %q, said %q", after, f.serverUID(), f.notes)
	}
}

func TestAServerIsRestartedOnlyWhileNoStartedWorkloadUsesItsVolume(t *testing.T) {
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
		"one that waits to mount, in vain":            {user: user(sandbox("False")), restarted: true},
		"one that no kubelet knows":                   {user: user(), restarted: true},
		"one that has ended":                          {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }), restarted: true},
		"one that uses another volume":                {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "other" }), restarted: true},
		"one on a node that it is not attached to":    {user: user(sandbox("True"), ran, elsewhere), restarted: true},
		"one of another namespace, of the same claim": {user: user(sandbox("True"), ran, func(pod *corev1.Pod) { pod.Namespace = "other" }), restarted: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, server(), test.user)
			if len(test.user.Finalizers) > 0 {
				f.must(f.Delete(t.Context(), test.user))
			}
			after := f.reconcile()
			if test.restarted {
				if f.serverUID() != "" || !slices.Equal(f.notes, []string{repaired}) {
					t.Fatalf("server %q, said %q", f.serverUID(), f.notes)
				}
				return
			}
			want := []string{"Warning OutOfLine: " + wrong + "; server pod share-manager-v is restarted when no started workload uses the volume: pod default/web-0 does"}
			if after != inUseRetry || f.serverUID() != "uid-1" || !slices.Equal(f.notes, want) {
				t.Fatalf("again after %v, server %q, said %q", after, f.serverUID(), f.notes)
			}
			f.reconcile()
			if len(f.notes) != 1 {
				t.Fatalf("said again: %q", f.notes)
			}
			f.must(f.Get(t.Context(), client.ObjectKeyFromObject(test.user), test.user))
			test.user.Finalizers = nil
			f.must(f.Update(t.Context(), test.user))
			f.must(client.IgnoreNotFound(f.Delete(t.Context(), test.user)))
			if f.reconcile(); f.serverUID() != "" {
				t.Fatal("it is not restarted when nobody uses the volume any more")
			}
		})
	}
}

func TestAServerThatARestartWouldNotHelpIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		said   string
	}{
		"it opts out": {
			func(pod *corev1.Pod) { pod.Annotations[storage.OptOutAnnotation] = "true" },
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
				f.clock.SetTime(f.clock.Now().Add(time.Hour))
				if after := f.reconcile(); after != 0 || f.serverUID() != "uid-1" {
					t.Fatalf("again after %v, server %q", after, f.serverUID())
				}
			}
			if want := []string{"Warning OutOfLine: " + test.said}; !slices.Equal(f.notes, want) {
				t.Fatalf("got  %q\nwant %q", f.notes, want)
			}
		})
	}
}

func TestAServerInLineIsLeftAlone(t *testing.T) {
	cluster := func(f *fixture) {
		var s corev1.Service
		f.must(f.Get(f.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: "v"}, &s))
		s.Spec.ClusterIP = "10.43.0.1"
		f.must(f.Update(f.Context(), &s))
	}
	for name, test := range map[string]struct {
		server *corev1.Pod
		but    func(*fixture)
	}{
		"on the network":                         {server: server(asksFor(netOne.String()))},
		"on the network, among others":           {server: server(asksFor("kube-system/x@net1," + netOne.String()))},
		"on two networks of the profile":         {server: server(asksFor("kube-system/two@lhnet2," + netOne.String()))},
		"on the cluster network, as its Service": {server: server(), but: cluster},
		"going anyway":                           {server: server(func(pod *corev1.Pod) { pod.Finalizers = []string{"x/y"} }), but: func(f *fixture) { f.must(f.Delete(f.Context(), server())) }},
		"ended":                                  {server: server(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })},
		"before anything is recorded": {server: server(), but: func(f *fixture) {
			f.must(f.Delete(f.Context(), &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: profile.Name}}))
		}},
		"of another volume": {server: server(func(pod *corev1.Pod) { pod.Labels[profile.VolumeLabel], pod.OwnerReferences[0].Name = "w", "w" })},
		"with its volume's ShareManager gone too": {server: server(), but: func(f *fixture) {
			f.must(f.Delete(f.Context(), &longhorn.ShareManager{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}}))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.server)
			if test.but != nil {
				test.but(f)
			}
			if after := f.reconcile(); after != 0 || f.serverUID() != "uid-1" || f.notes != nil {
				t.Fatalf("again after %v, server %q, said %q", after, f.serverUID(), f.notes)
			}
		})
	}
}

// The webhooks may be away for long: each new pod is as wrong as the one before.
func TestARestartThatDoesNotHelpIsTriedAgainAfterGrowingPauses(t *testing.T) {
	f := newFixture(t, server())
	f.reconcile()
	for i, pause := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		pause *= time.Minute
		f.again()
		if after := f.reconcile(); after != pause || f.serverUID() == "" {
			t.Fatalf("restart %d: again after %v, want %v; server %q", i, after, pause, f.serverUID())
		}
		f.clock.SetTime(f.clock.Now().Add(pause - time.Second))
		if after := f.reconcile(); after != time.Second || f.serverUID() == "" {
			t.Fatalf("restart %d: a second before, again after %v; server %q", i, after, f.serverUID())
		}
		f.clock.SetTime(f.clock.Now().Add(time.Second))
		if after := f.reconcile(); after != 0 || f.serverUID() != "" {
			t.Fatalf("restart %d: again after %v; server %q", i, after, f.serverUID())
		}
	}
	// One that helps ends that.
	f.again(asksFor(netOne.String()))
	f.reconcile()
	f.must(f.Delete(t.Context(), server()))
	f.again()
	if after := f.reconcile(); after != 0 || f.serverUID() != "" {
		t.Fatalf("after one that helped: again after %v, server %q", after, f.serverUID())
	}
	f.again()
	if after := f.reconcile(); after != firstRetry {
		t.Fatalf("after one that helped: again after %v", after)
	}
}

// What is deleted is the pod that was judged.
func TestAServerThatWasReplacedInTheMeantimeIsNotRestarted(t *testing.T) {
	f := newFixture(t, server())
	api := interceptor.NewClient(f.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			f.must(c.Delete(ctx, server()))
			f.again(asksFor(netOne.String()))
			return c.Delete(ctx, o, opts...)
		},
	})
	f.r.Client = api
	if after := f.reconcile(); after != 0 || f.serverUID() != "uid-again-1" || f.notes != nil || len(f.r.repairs) != 0 {
		t.Fatalf("again after %v, server %q, said %q, counted %v", after, f.serverUID(), f.notes, f.r.repairs)
	}
}

// Longhorn may write the endpoint between the look and the patch.
func TestEndpointThatHasChangedIsNotCorrected(t *testing.T) {
	f := newFixture(t)
	key := client.ObjectKey{Namespace: profile.Namespace, Name: "v"}
	var seen longhorn.ShareManager
	f.must(f.Get(t.Context(), key, &seen))
	seen.Status.Endpoint = "nfs://10.43.0.9/v"
	f.must(f.Status().Update(t.Context(), seen.DeepCopy()))
	seen.Status.Endpoint = "nfs://None/v"
	service, err := f.r.Live.Service(t.Context(), "v")
	f.must(err)
	if err := f.r.correctEndpoint(t.Context(), &seen, service); err == nil {
		t.Error("no error: the patch has no precondition")
	}
	var sm longhorn.ShareManager
	if f.must(f.Get(t.Context(), key, &sm)); sm.Status.Endpoint != "nfs://10.43.0.9/v" {
		t.Errorf("what Longhorn wrote is overwritten with %q", sm.Status.Endpoint)
	}
}

func TestTheEndpointFollowsTheService(t *testing.T) {
	for name, test := range map[string]struct{ clusterIP, before, want string }{
		"Longhorn bug: none":           {corev1.ClusterIPNone, "nfs://None/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"an address of before":         {corev1.ClusterIPNone, "nfs://10.43.0.1/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"as it should be":              {corev1.ClusterIPNone, "nfs://v.longhorn-system.svc.cluster.local/v", "nfs://v.longhorn-system.svc.cluster.local/v"},
		"empty is Longhorn's to fill":  {corev1.ClusterIPNone, "", ""},
		"back to the cluster network":  {"10.43.0.1", "nfs://v.longhorn-system.svc.cluster.local/v", "nfs://10.43.0.1/v"},
		"a cluster IP, as it was made": {"10.43.0.1", "nfs://10.43.0.1/v", "nfs://10.43.0.1/v"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			key := client.ObjectKey{Namespace: profile.Namespace, Name: "v"}
			var s corev1.Service
			f.must(f.Get(t.Context(), key, &s))
			s.Spec.ClusterIP = test.clusterIP
			f.must(f.Update(t.Context(), &s))
			var sm longhorn.ShareManager
			f.must(f.Get(t.Context(), key, &sm))
			sm.Status.Endpoint = test.before
			f.must(f.Status().Update(t.Context(), &sm))
			f.reconcile()
			f.must(f.Get(t.Context(), key, &sm))
			if sm.Status.Endpoint != test.want {
				t.Fatalf("got %q, want %q", sm.Status.Endpoint, test.want)
			}
		})
	}
}

func TestAServiceThatKeepsItsVolumeOffTheNetworkIsToldOfOnce(t *testing.T) {
	f := newFixture(t, server())
	var s corev1.Service
	f.must(f.Get(t.Context(), client.ObjectKey{Namespace: profile.Namespace, Name: "v"}, &s))
	s.Spec.ClusterIP, s.Spec.Type = "10.43.0.1", corev1.ServiceTypeNodePort
	f.must(f.Update(t.Context(), &s))
	for range 3 {
		f.reconcile()
	}
	want := []string{"Warning NotClusterIP: Service v is not of type ClusterIP, so it can't be headless: it is left alone, and the volume stays off network kube-system/one@lhnet1"}
	if !slices.Equal(f.notes, want) {
		t.Fatalf("got %q", f.notes)
	}
}

func TestWhatIsRememberedOfAVolumeGoesWithIt(t *testing.T) {
	f := newFixture(t, server(), user(sandbox("True")))
	f.reconcile()
	f.r.repairs["v"] = repair{times: 3}
	f.must(f.Delete(t.Context(), &longhorn.ShareManager{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: "v"}}))
	f.reconcile()
	if f.r.reports.Len() != 0 || len(f.r.repairs) != 0 {
		t.Fatalf("got %v, %v", f.r.reports.Len(), f.r.repairs)
	}
}
