package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/kit"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var network = objects.Network("one", "lhnet1")

// world is a small cluster in truth, to the millisecond: which network namespace each mount was
// made in, and which namespaces are gone. The controller sees an API with whole seconds and old
// statuses, through a cache that may lag, with clients that fail when the controller crashes.
type world struct {
	testkit.TB
	*clocktesting.FakeClock
	uids int
	// oldKubelet writes no condition PodReadyToStartContainers (before Kubernetes 1.29).
	oldKubelet bool
	nodes      []string
	// clocks are how far the nodes' clocks are behind, and clockSet when each was set last.
	clocks   map[string]time.Duration
	clockSet map[string]time.Time
	clients  map[string]*clientPod
	zombies  []*clientPod // force-deleted, and still running
	slots    []*slot
	// others are pods that only look like clients, and twins of clients.
	others map[string]*corev1.Pod
	// twoInterfaces: clients request another network first, as after an upgrade to Longhorn 1.11.
	twoInterfaces bool
	// host is the network namespace of the nodes, and mountsInHost whether clients mount there.
	host         *netns
	mountsInHost bool
	hostSince    time.Time

	live, cached store
	lag          []client.Object // changes that the cache lacks; an object without a UID is a deletion

	reconciler *Reconciler
	Events     *testkit.Recorder
	// crashIn counts down to the crash of the controller, before or after each write.
	crashIn int
	crashed bool
	queue   map[string]bool
	timers  map[string]time.Time
	evicted map[string]bool
	// turns are the last evictions of each owner's pods by the present leader.
	turns map[string]time.Time
	// forClient counts evictions from a slot for one network namespace of a client.
	forClient map[string]int
	requests  int
	busy      time.Time // when the controller last asked for a request soon
	// server is the address that volume v-shared is published at, and moves counts its changes.
	server netip.Addr
	moves  int
	// failing: the API server answers with an error before the change, or its answer is lost after or before it.
	failing string
}

var (
	errCrashed = errors.New("the controller has crashed")
	errAPI     = apierrors.NewInternalError(errors.New("an error"))
	errLost    = apierrors.NewTimeoutError("the answer is lost", 1)
)

// newWorld is a cluster of two nodes, without clients and workloads.
func newWorld(t testkit.TB, oldKubelet bool) *world {
	w := &world{
		TB: t, FakeClock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0).UTC()), Events: &testkit.Recorder{}, oldKubelet: oldKubelet,
		nodes: []string{"node-1", "node-2"}, clients: map[string]*clientPod{}, others: map[string]*corev1.Pod{},
		clocks: map[string]time.Duration{}, clockSet: map[string]time.Time{},
		host: &netns{client: &clientPod{listed: true}}, forClient: map[string]int{}, evicted: map[string]bool{},
	}
	w.live, w.cached = newStore(t, w.funcs()), newStore(t, interceptor.Funcs{})
	w.slots = []*slot{
		newSlot("web-0", "StatefulSet/web", "shared"), newSlot("web-1", "StatefulSet/web", "own", "shared"), newSlot("rs-x", "ReplicaSet/rs", "shared"),
		newSlot("lone", "", "shared"), newSlot("db-0", "StatefulSet/db", "own", "vm", "foreign"),
		newSlot("cip-0", "StatefulSet/cip", "plain"), newSlot("far-0", "StatefulSet/far", "shared"),
	}
	w.slots[6].node = "node-2"
	for _, o := range storageObjects() {
		w.put(o)
	}
	for _, node := range w.nodes {
		w.boot(node)
	}
	w.restart()
	w.publishServer(addressOne)
	return w
}

// storageObjects are a record with clients and servers on the network, and the volumes of the claims: shared, own
// (RWO), migratable, of another driver, and plain. All but plain have a Service that is on the network.
func storageObjects() []client.Object {
	list := []client.Object{
		objects.Record(network), mountSetting(true), objects.LonghornSetting(catalog.StorageNetwork, network.Network.String()),
		&longhorn.Volume{ObjectMeta: objects.Here("v-shared"), Spec: longhorn.VolumeSpec{AccessMode: "rwx"}},
		&longhorn.Volume{ObjectMeta: objects.Here("v-vm"), Spec: longhorn.VolumeSpec{AccessMode: "rwx", Migratable: true}},
	}
	for _, claim := range []string{"shared", "own", "vm", "foreign", "plain"} {
		pv := objects.Volume("pv-of-"+claim, objects.Longhorn.Driver, "v-"+claim, claim)
		if claim != "own" {
			objects.Shared(pv)
		}
		if claim == "foreign" {
			pv.Spec.CSI.Driver = "efs.csi.aws.com"
		}
		if list = append(list, pv); claim != "plain" {
			list = append(list, objects.Headless("v-"+claim, network))
		}
	}
	return list
}

// mountSetting is Longhorn's setting for the network namespace in which clients mount.
func mountSetting(inClient bool) *longhorn.Setting {
	return objects.LonghornSetting(catalog.StorageNetworkForRWX, strconv.FormatBool(inClient))
}

// mountIn changes where clients mount, by the value of the setting.
func (w *world) mountIn(client bool) {
	if client && w.mountsInHost && !w.knowsHost() {
		for _, s := range w.slots {
			if s.pod != nil && s.pod.mount == w.host && !s.pod.mounted.Before(w.hostSince) {
				s.pod.unseen = true
			}
		}
	}
	if !client && !w.mountsInHost {
		w.hostSince = w.Now()
	}
	w.mountsInHost = !client
	w.put(mountSetting(client))
}

// knowsHost reports whether the controller knows that clients mount on the node: on record, or for the next record.
func (w *world) knowsHost() bool {
	w.reconciler.mu.Lock()
	defer w.reconciler.mu.Unlock()
	return reads.MountingOf(w.rollout()).Place == rwx.InHost || w.reconciler.missed.Place == rwx.InHost
}

func (w *world) set(name catalog.Name, value string) { w.put(objects.Setting(name, value)) }

// setting is the value of a setting of Fairlead; "" is none.
func (w *world) setting(reader client.Reader, name catalog.Name) string {
	if s := testkit.Get[v1alpha1.Setting](w.TB, reader, objects.Longhorn.Namespace, string(name)); s != nil {
		return *s.Value
	}
	return ""
}

func (w *world) rollout() *v1alpha1.NetworkRollout {
	return testkit.Get[v1alpha1.NetworkRollout](w.TB, w.live.client, objects.Longhorn.Namespace, longhorn.Name)
}

// recordClients changes the network of clients on the record.
func (w *world) recordClients(network string) {
	rollout := w.rollout()
	rollout.Status.Clients.Network = network
	w.put(rollout)
}

// store has objects, also terminating ones, which the fake API would refuse.
type store struct {
	tracker clienttesting.ObjectTracker
	client  client.WithWatch
}

func newStore(t testkit.TB, funcs interceptor.Funcs) store {
	scheme := testkit.Value[*runtime.Scheme](t)(newScheme())
	var indexes fakeapi.Indexes
	testkit.Must(t, errors.Join(reads.IndexClaims(context.Background(), &indexes), reads.IndexNodes(context.Background(), &indexes)))
	tracker := clienttesting.NewObjectTracker(scheme, serializer.NewCodecFactory(scheme).UniversalDecoder())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjectTracker(tracker).WithInterceptorFuncs(funcs)
	for _, i := range indexes {
		builder.WithIndex(i.Object, i.Field, i.Keys)
	}
	return store{tracker, builder.Build()}
}

func (s store) resource(t testkit.TB, o client.Object) schema.GroupVersionResource {
	gvr, _ := meta.UnsafeGuessKindToResource(testkit.Value[schema.GroupVersionKind](t)(s.client.GroupVersionKindFor(o)))
	return gvr
}

func (s store) put(t testkit.TB, o client.Object) {
	resource := s.resource(t, o)
	err := s.tracker.Update(resource, o, o.GetNamespace())
	if apierrors.IsNotFound(err) {
		err = s.tracker.Create(resource, o, o.GetNamespace())
	}
	testkit.Must(t, err)
}

func (s store) remove(t testkit.TB, o client.Object) {
	testkit.Must(t, client.IgnoreNotFound(s.tracker.Delete(s.resource(t, o), o.GetNamespace(), o.GetName())))
}

// put stores an object; the cache has it later. Pods of users are not cached.
func (w *world) put(o client.Object) {
	o.SetResourceVersion(strconv.Itoa(w.next()))
	if o.GetUID() == "" {
		o.SetUID(w.newUID())
	}
	w.live.put(w.TB, o)
	if o.GetNamespace() != "default" {
		w.lag = append(w.lag, o.DeepCopyObject().(client.Object))
	}
}

func (w *world) remove(o client.Object) {
	w.live.remove(w.TB, o)
	if o.GetNamespace() != "default" {
		gone := o.DeepCopyObject().(client.Object)
		gone.SetUID("")
		w.lag = append(w.lag, gone)
	}
}

// deliver brings the next n changes to the cache, and their events to the controller.
func (w *world) deliver(n int) {
	for _, o := range w.lag[:n] {
		before := testkit.Get[discoveryv1.EndpointSlice](w.TB, w.cached.client, o.GetNamespace(), o.GetName())
		if o.GetUID() == "" {
			w.cached.remove(w.TB, o)
		} else {
			w.cached.put(w.TB, o)
		}
		switch o := o.(type) {
		case *discoveryv1.EndpointSlice:
			if before != nil && serverMoved(before, o) {
				for _, node := range w.nodes {
					w.reconciler.requested.Store(node, true)
					w.queue[node] = true
				}
			}
		case *corev1.Pod:
			w.queue[o.Spec.NodeName] = true
		case *v1alpha1.Setting, *v1alpha1.NetworkRollout, *longhorn.Setting:
			for _, request := range w.reconciler.allNodes(context.Background(), nil) {
				w.queue[request.Name] = true
			}
		}
	}
	w.lag = w.lag[n:]
}

// restart starts a new leader with an up-to-date cache and no memory.
func (w *world) restart() {
	w.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	testkit.Must(w.TB, err)
	w.reconciler = &Reconciler{
		Names: objects.Longhorn, DeadMounts: true, OnRequest: true, Client: w.live.client, Live: w.live.client,
		Cached:     reads.NewReader(objects.Longhorn, w.cached.client, w.cached.client),
		MaxPercent: 100, Events: w.Events, Clock: w, Log: slog.New(slog.DiscardHandler), metrics: m,
	}
	w.reconciler.init()
	w.crashed, w.crashIn, w.turns, w.timers, w.queue = false, -1, map[string]time.Time{}, map[string]time.Time{}, map[string]bool{}
	w.deliver(len(w.lag))
	for node := range w.clients {
		w.queue[node] = true
	}
}

// work lets the controller handle one due request. It reports whether a request was due.
func (w *world) work() bool {
	for node, due := range w.timers {
		if !due.After(w.Now()) {
			delete(w.timers, node)
			w.queue[node] = true
		}
	}
	if len(w.queue) == 0 {
		return false
	}
	node := slices.Min(slices.Collect(maps.Keys(w.queue)))
	delete(w.queue, node)
	seen := w.seenNamespace(node)
	result, err := w.reconciler.Reconcile(context.Background(), kit.Request(node)[0])
	switch {
	case w.crashed:
		w.restart()
		return true
	case err != nil:
		result.RequeueAfter = 10 * time.Millisecond
	default:
		w.checkNamespaceIsNoted(node)
		if seen != nil {
			seen.client.noted = seen
		}
	}
	if result.RequeueAfter > 0 && result.RequeueAfter < leftDead {
		w.busy = w.Now()
	}
	if due := w.Now().Add(result.RequeueAfter); result.RequeueAfter > 0 && (w.timers[node].IsZero() || due.Before(w.timers[node])) {
		w.timers[node] = due
	}
	return true
}

// seenNamespace is the namespace of a client if kubelet and Multus have reported it and the cache has the reports; else nil.
func (w *world) seenNamespace(node string) *netns {
	c := w.clients[node]
	if c == nil || c.ns == nil || c.reported != c.ns || w.cachedClient(node) == nil || !w.isReportedByMultus(c) {
		return nil
	}
	cached := testkit.Get[corev1.Pod](w.TB, w.cached.client, objects.Longhorn.Namespace, c.name)
	if cached == nil || cached.ResourceVersion != c.version {
		return nil
	}
	return c.ns
}

// checkNamespaceIsNoted: the next leader could not detect a new namespace without the note on the client's pod.
func (w *world) checkNamespaceIsNoted(node string) {
	pod := w.clients[node]
	if pod == nil || pod.annotations[rwx.NamespaceAnnotation] != "" {
		return
	}
	c := w.cachedClient(node)
	must.True(w, c == nil || string(pod.uid) != c.UID, "invariant 7: the namespace of the client on %s is not noted", node)
}

// cachedClient is the client that can mount on a node, by the cache; nil if there is none, or several.
func (w *world) cachedClient(node string) *rwx.Client {
	clients, err := w.reconciler.Cached.ClientsOn(context.Background(), node)
	testkit.Must(w.TB, err)
	if len(clients) != 1 || !clients[0].Ready || clients[0].Terminating || !clients[0].Reaches(network) {
		return nil
	}
	return &clients[0]
}

// funcs are the API server's answers to the controller.
func (w *world) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Patch: w.patch, SubResourceCreate: w.evict,
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			review, ok := o.(*authenticationv1.SelfSubjectReview)
			must.True(w, ok, "%T is created", o)
			w.requests++
			if w.failing == "before" {
				return errAPI
			}
			review.CreationTimestamp = seconds(w.Now())
			return nil
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, _ string, o client.Object, _ ...client.SubResourceUpdateOption) error {
			return w.write(func() error {
				if w.failing == "before" {
					return errAPI
				}
				w.put(o.DeepCopyObject().(client.Object))
				return nil
			})
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			w.requests++
			err := c.List(ctx, list, options...)
			if pods, ok := list.(*corev1.PodList); ok {
				for i := range pods.Items {
					pods.Items[i].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
				}
			}
			return err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			w.requests++
			return c.Get(ctx, key, o, options...)
		},
	}
}

// write lets the controller crash before or after the write.
func (w *world) write(do func() error) error {
	if w.crashes() {
		return errCrashed
	}
	w.requests++
	if err := do(); err != nil {
		return err
	}
	if w.crashes() {
		return errCrashed
	}
	return nil
}

func (w *world) crashes() bool {
	w.crashed = w.crashed || w.crashIn == 0
	w.crashIn--
	return w.crashed
}

// patch refuses a patch with the UID of another pod, which the fake client accepts.
func (w *world) patch(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return w.write(func() error {
		var change struct{ Metadata metav1.ObjectMeta }
		testkit.Must(w.TB, json.Unmarshal(testkit.Value[[]byte](w.TB)(patch.Data(o)), &change))
		if _, ok := o.(*v1alpha1.NetworkRollout); ok {
			rollout := w.rollout()
			rollout.Annotations = change.Metadata.Annotations
			w.put(rollout)
			return nil
		}
		for _, pod := range w.clients {
			if pod.name != o.GetName() {
				continue
			}
			if change.Metadata.UID != pod.uid {
				return apierrors.NewConflict(corev1.Resource("pods"), pod.name, errors.New("another UID"))
			}
			if w.failing == "before" {
				return errAPI
			}
			maps.Copy(pod.annotations, change.Metadata.Annotations)
			w.publish(pod)
			return nil
		}
		if w.others[o.GetName()] == nil {
			return apierrors.NewNotFound(corev1.Resource("pods"), o.GetName())
		}
		return nil
	})
}

// evict is the API server's answer to an eviction, which is compared with the truth.
func (w *world) evict(_ context.Context, _ client.Client, subresource string, o, body client.Object, _ ...client.SubResourceCreateOption) error {
	must.True(w, subresource == "eviction", "subresource %s", subresource)
	return w.write(func() error {
		i := slices.IndexFunc(w.slots, func(s *slot) bool { return s.pod != nil && s.name == o.GetName() })
		if i < 0 {
			return apierrors.NewNotFound(corev1.Resource("pods"), o.GetName())
		}
		s, pod := w.slots[i], w.slots[i].pod
		precondition := body.(*policyv1.Eviction).DeleteOptions.Preconditions
		// Kubernetes uses up the disruption budget before it compares a version.
		must.True(w, precondition.UID != nil && precondition.ResourceVersion == nil, "the precondition of the eviction of %s is not the UID alone", s.name)
		if *precondition.UID != pod.uid {
			return apierrors.NewConflict(corev1.Resource("pods"), s.name, errors.New("another UID"))
		}
		w.checkEviction(pod)
		switch {
		case s.refused != nil:
			return s.refused
		case w.failing == "budget":
			return refusals["budget"]
		case w.failing == "before":
			return errAPI
		case w.failing == "lost":
			return errLost
		}
		w.evicted[string(pod.uid)] = true
		w.turns[s.owner.UID] = w.Now()
		w.forClient[fmt.Sprint(s.name, " for ", w.cachedClient(s.node).Sandbox.Identity, " after moves: ", w.moves)]++
		w.terminate(pod)
		if w.failing == "after" {
			return errLost
		}
		return nil
	})
}

// checkEviction checks invariants 7 and 8.
func (w *world) checkEviction(pod *workloadPod) {
	s := pod.slot
	enabled, blacklist := w.setting(w.cached.client, catalog.AutoDeletePod), w.setting(w.cached.client, catalog.AutoDeletePodBlacklist)
	last, hadTurn := w.turns[s.owner.UID]
	terminating := 0
	for _, other := range w.slots {
		if other.pod != nil && other.pod != pod && other.node == s.node && leaving(w.workloadObject(other.pod), w.Now()) {
			terminating++
		}
	}
	for _, c := range []struct {
		violated  bool
		violation string
	}{
		{w.evicted[string(pod.uid)], "invariant 8: a second time"},
		{!pod.left.IsZero(), "invariant 7: while it terminates"},
		{!s.inClientNetwork, "invariant 8: though no volume is mounted through the client's network"},
		{pod.mount == nil, "invariant 8: before its volume is mounted"},
		{!w.dead(pod) && !pod.unseen, "invariant 8: though its mount is alive"},
		{s.owner.IsZero(), "though it has no controller"},
		{pod.optOut, "though it opts out"},
		{enabled != "true" && enabled != "", "though the setting is " + enabled},
		{slices.Contains(catalog.Kinds(blacklist), s.owner.GroupKind()), "though its kind is blacklisted"},
		{w.cachedClient(s.node) == nil, "though its node has no client that can mount, or several"},
		{hadTurn && w.Now().Before(last.Add(turn)), "too soon after another pod of its controller"},
		{terminating >= perNode, "while too many pods terminate on its node"},
	} {
		must.True(w, !c.violated, "pod %s is restarted: %s", s.name, c.violation)
	}
}
