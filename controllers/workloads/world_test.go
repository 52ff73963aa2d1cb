package workloads

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// The world below is a small cluster as it really is, to the millisecond: which
// network namespace each mount was made in, and which of them are gone. The
// controller sees of it what it would see of a real one: an API where times are
// whole seconds and statuses are as old as the kubelet's last report, through a
// cache that may be behind, by clients that fail when it crashes.

var (
	longhornProfile = storage.Longhorn()
	network         = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
)

type tester interface {
	Helper()
	Fatalf(format string, args ...any)
}

// netns is a network namespace of a client, in truth.
type netns struct {
	began, used time.Time // used since a container runs in it
	client      *clientPod
	gone        bool
	address     string
	mac         int
	extra       bool // an interface was added to the running pod
}

// clientPod is a CSI plugin pod in truth. Of its two containers the second mounts.
type clientPod struct {
	uid, name, node string
	left            time.Time // it terminates since
	// listed: it is in the API. One that was force-deleted runs on for a while.
	listed     bool
	began      time.Time
	ns         *netns
	spaces     []*netns // all there were
	containers [2]time.Time
	// asks for these networks.
	asks string

	// annotations and status are what the API has of it.
	annotations map[string]string
	status      corev1.PodStatus
	// seen is the namespace that the kubelet reported last.
	seen *netns
	// told is the start of the newest namespace that shows in the record and the
	// containers, and not in the condition.
	told, ready time.Time
}

// workloadPod is a pod that uses volumes, in truth.
type workloadPod struct {
	slot    *slot
	uid     string
	left    time.Time // it terminates since
	optOut  bool
	created time.Time
	began   time.Time // the kubelet took it on
	mount   *netns    // where its volumes were mounted
	mounted time.Time
	sandbox time.Time
	started time.Time // its container runs since
	before  time.Time // and ran before since
	times   int       // that its container was started again
	status  corev1.PodStatus
}

// slot is what a controller makes a pod for, again and again.
type slot struct {
	name, node string
	owner      storage.Owner // zero is a bare pod
	claims     []string
	atStake    bool // its volumes may be mounted through the client's network
	byValue    bool // they are on the cluster network, and mounted as the settings say
	blocked    bool // by a disruption budget
	optOut     bool // so does its template
	pod        *workloadPod
}

type world struct {
	tester
	now  time.Time
	uids int
	// oldKubelet writes no condition PodReadyToStartContainers (before Kubernetes 1.29).
	oldKubelet bool
	nodes      []string
	clients    map[string]*clientPod
	zombies    []*clientPod // force-deleted, and still there
	slots      []*slot
	// others are pods that only look like clients, and twins of real ones.
	others map[string]*corev1.Pod
	// twoInterfaces: clients ask for another network first, as after an upgrade to Longhorn 1.11.
	twoInterfaces bool
	// host is the network namespace of the nodes, and mountsInHost whether clients mount there.
	host         *netns
	mountsInHost bool

	live, cached clienttesting.ObjectTracker
	scheme       *runtime.Scheme
	log          []client.Object // what the cache has yet to see; without a UID it is a deletion
	values       map[catalog.Name]string
	seenValues   map[catalog.Name]string // as the cache has them

	reconciler *Reconciler
	// dies: so many writes from now the controller crashes, before or after the write.
	dies    int
	dead    bool
	queue   map[string]bool
	timers  map[string]time.Time
	evicted map[string]bool
	// turns are when pods of a controller were evicted last, while the controller of evictions lived.
	turns map[string]time.Time
	// forClient counts evictions from a slot for one network namespace of a client.
	forClient map[string]int
	requests  int
	events    map[string][]string // by UID: reasons
	busy      time.Time           // when it was last about to do something more
	notes     []string
	// failing: the API server answers with an error, before or after it is done.
	failing string
}

var errDied = errors.New("the controller has died")

// newWorld is a cluster of two nodes at rest, without a client or a workload yet.
func newWorld(t tester, scheme *runtime.Scheme, oldKubelet bool) *world {
	decoder := serializer.NewCodecFactory(scheme).UniversalDecoder()
	w := &world{
		tester: t, scheme: scheme, oldKubelet: oldKubelet, now: time.Unix(1_800_000_000, 0).UTC(), nodes: []string{"node-1", "node-2"},
		clients: map[string]*clientPod{}, live: clienttesting.NewObjectTracker(scheme, decoder), cached: clienttesting.NewObjectTracker(scheme, decoder),
		values: map[catalog.Name]string{}, seenValues: map[catalog.Name]string{},
		host: &netns{client: &clientPod{listed: true}}, others: map[string]*corev1.Pod{}, forClient: map[string]int{},
		queue: map[string]bool{}, timers: map[string]time.Time{}, evicted: map[string]bool{}, events: map[string][]string{}, dies: -1,
	}
	stateful := func(name string) storage.Owner {
		return storage.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: "uid-" + name}
	}
	w.slots = []*slot{
		{name: "web-0", node: "node-1", owner: stateful("web"), claims: []string{"shared"}, atStake: true},
		{name: "web-1", node: "node-1", owner: stateful("web"), claims: []string{"own", "shared"}, atStake: true},
		{name: "rs-x", node: "node-1", owner: storage.Owner{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "uid-rs"}, claims: []string{"shared"}, atStake: true},
		{name: "lone", node: "node-1", claims: []string{"shared"}, atStake: true},
		{name: "db-0", node: "node-1", owner: stateful("db"), claims: []string{"own", "vm", "foreign"}},
		{name: "cip-0", node: "node-1", owner: stateful("cip"), claims: []string{"plain"}, atStake: true, byValue: true},
		{name: "far-0", node: "node-2", owner: stateful("far"), claims: []string{"shared"}, atStake: true},
	}
	for _, o := range storageObjects() {
		w.put(o)
	}
	w.deliver(len(w.log))
	w.restart()
	return w
}

// storageObjects are a record with everything on the network, and the volumes of
// the claims: one shared, one of its own, one migratable, one of another driver,
// each with a Service that would put it on the network.
func storageObjects() []client.Object {
	at := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: name}
	}
	rollout := &v1alpha1.NetworkRollout{ObjectMeta: at(longhornProfile.Name)}
	rollout.Status.Recorded = true
	rollout.Status.Clients.Network, rollout.Status.Servers.Network = network.String(), network.String()
	objects := []client.Object{
		rollout,
		mountSetting(true),
		&longhorn.Setting{ObjectMeta: at(string(catalog.StorageNetwork)), Value: network.Network.String()},
		&longhorn.Volume{ObjectMeta: at("v-shared"), Spec: longhorn.VolumeSpec{AccessMode: "rwx"}},
		&longhorn.Volume{ObjectMeta: at("v-vm"), Spec: longhorn.VolumeSpec{AccessMode: "rwx", Migratable: true}},
	}
	for _, claim := range []string{"shared", "own", "vm", "foreign", "plain"} {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-of-" + claim}}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: longhornProfile.Driver, VolumeHandle: "v-" + claim}
		pv.Status.Phase = corev1.VolumeBound
		switch claim {
		case "own":
			pv.Spec.AccessModes[0] = corev1.ReadWriteOnce
		case "foreign":
			pv.Spec.CSI.Driver = "efs.csi.aws.com"
		}
		if claim == "plain" {
			objects = append(objects, pv) // its Service has a cluster IP
			continue
		}
		service := &corev1.Service{ObjectMeta: at("v-" + claim), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
		service.Labels = map[string]string{longhornProfile.VolumeLabel: service.Name}
		service.Annotations = map[string]string{storage.NetworkAnnotation: network.String()}
		objects = append(objects, pv, service)
	}
	return objects
}

// mountSetting is Longhorn's setting that says where clients mount.
func mountSetting(inClient bool) *longhorn.Setting {
	return &longhorn.Setting{
		ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: string(catalog.StorageNetworkForRWX)}, Value: strconv.FormatBool(inClient),
	}
}

// mountIn changes the value of that setting, applied or not.
func (w *world) mountIn(client bool) {
	w.mountsInHost = !client
	w.put(mountSetting(client))
}

// put stores an object; the cache of the storage system's objects sees it later.
func (w *world) put(o client.Object) {
	w.Helper()
	w.uids++
	o.SetResourceVersion(fmt.Sprint(w.uids))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprint("uid-", w.uids)))
	}
	w.must(w.store(w.live, o))
	if o.GetNamespace() != "default" {
		w.log = append(w.log, o.DeepCopyObject().(client.Object))
	}
}

func (w *world) remove(o client.Object) {
	w.Helper()
	w.must(w.erase(w.live, o))
	if o.GetNamespace() != "default" {
		gone := o.DeepCopyObject().(client.Object)
		gone.SetUID("")
		w.log = append(w.log, gone)
	}
}

func (w *world) store(tracker clienttesting.ObjectTracker, o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, w.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	err = tracker.Update(gvr, o, o.GetNamespace())
	if apierrors.IsNotFound(err) {
		err = tracker.Create(gvr, o, o.GetNamespace())
	}
	return err
}

func (w *world) erase(tracker clienttesting.ObjectTracker, o client.Object) error {
	gvk, err := apiutil.GVKForObject(o, w.scheme)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(gvk)
	return client.IgnoreNotFound(tracker.Delete(gvr, o.GetNamespace(), o.GetName()))
}

// deliver lets the cache see the next n changes, and the controller their events.
func (w *world) deliver(n int) {
	w.Helper()
	for _, o := range w.log[:n] {
		if o.GetUID() == "" {
			w.must(w.erase(w.cached, o))
		} else {
			w.must(w.store(w.cached, o))
		}
		switch o := o.(type) {
		case *corev1.Pod:
			w.queue[o.Spec.NodeName] = true
		case *v1alpha1.Setting:
			w.seenValues[catalog.Name(o.Name)] = *o.Value
			w.everywhere()
		case *v1alpha1.NetworkRollout, *longhorn.Setting:
			w.everywhere()
		}
	}
	w.log = w.log[n:]
}

func (w *world) everywhere() {
	if w.reconciler == nil {
		return // the first list
	}
	for _, request := range w.reconciler.allNodes(context.Background(), nil) {
		w.queue[request.Name] = true
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%v", err)
	}
}

// restart is a new leader: it remembers nothing, and begins with what there is.
func (w *world) restart() {
	w.Helper()
	registry := prometheus.NewRegistry()
	m, err := newMetrics(registry, longhornProfile.Name)
	w.must(err)
	indexed := func(tracker clienttesting.ObjectTracker) *fake.ClientBuilder {
		builder := fake.NewClientBuilder().WithScheme(w.scheme).WithObjectTracker(tracker)
		w.must(cluster.IndexClaims(context.Background(), indexes{builder}))
		w.must(cluster.IndexNodes(context.Background(), indexes{builder}))
		return builder
	}
	cache := indexed(w.cached).Build()
	api := indexed(w.live).WithInterceptorFuncs(interceptor.Funcs{
		Patch: w.patch, SubResourceCreate: w.evict, SubResourceUpdate: w.updateStatus,
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
	}).Build()
	w.reconciler = &Reconciler{
		Profile: longhornProfile, DeadMounts: true, OnRequest: true, Client: api, Live: api, Cached: cluster.NewReader(longhornProfile, cache, cache),
		MaxPercent: 100, Events: recorder{w}, Clock: now{w}, Log: slog.New(slog.DiscardHandler), metrics: m,
	}
	w.reconciler.init()
	w.turns = map[string]time.Time{}
	w.dead, w.dies, w.timers, w.queue = false, -1, map[string]time.Time{}, map[string]bool{}
	w.deliver(len(w.log)) // the first list
	for _, c := range w.clients {
		w.queue[c.node] = true
	}
}

// indexes puts the indexes of a cache on a fake client that is yet to be built.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

type now struct{ *world }

func (n now) Now() time.Time                  { return n.world.now }
func (n now) Since(t time.Time) time.Duration { return n.world.now.Sub(t) }

var _ clock.PassiveClock = now{}

// recorder keeps events: an object's reasons, and all as text.
type recorder struct{ *world }

func (r recorder) Eventf(regarding, _ runtime.Object, _, reason, _, note string, args ...any) {
	uid := ""
	switch o := regarding.(type) {
	case *corev1.Pod:
		uid = string(o.UID)
	case *corev1.ObjectReference:
		uid = string(o.UID)
	}
	r.requests++
	r.events[uid] = append(r.events[uid], reason)
	r.notes = append(r.notes, reason+": "+fmt.Sprintf(note, args...))
}

// lives counts down to the crash of the controller; after it, nothing gets through.
func (w *world) lives() error {
	if w.dies == 0 {
		w.dead = true
	}
	w.dies--
	if w.dead {
		return errDied
	}
	return nil
}

// updateStatus writes the status of the record, as it was read.
func (w *world) updateStatus(ctx context.Context, c client.Client, subresource string, o client.Object, _ ...client.SubResourceUpdateOption) error {
	if err := w.lives(); err != nil {
		return err
	}
	w.requests++
	if w.failing == "before" {
		return apierrors.NewInternalError(errors.New("an error"))
	}
	w.put(o.DeepCopyObject().(client.Object))
	return w.lives()
}

// patch does what the fake client does not: a patch of another pod's UID is a conflict.
func (w *world) patch(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if err := w.lives(); err != nil {
		return err
	}
	w.requests++
	data, err := patch.Data(o)
	w.must(err)
	var change struct {
		Metadata struct {
			UID         string            `json:"uid"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	w.must(json.Unmarshal(data, &change))
	if o, ok := o.(*v1alpha1.NetworkRollout); ok {
		var rollout v1alpha1.NetworkRollout
		w.must(c.Get(ctx, client.ObjectKeyFromObject(o), &rollout))
		rollout.Annotations = change.Metadata.Annotations
		w.put(&rollout)
		return w.lives()
	}
	if w.others[o.GetName()] != nil {
		return w.lives()
	}
	for _, pod := range w.clients {
		if pod.name != o.GetName() {
			continue
		}
		if change.Metadata.UID != pod.uid {
			return apierrors.NewConflict(corev1.Resource("pods"), pod.name, errors.New("the UID is another"))
		}
		if w.failing == "before" {
			return apierrors.NewInternalError(errors.New("an error"))
		}
		maps.Copy(pod.annotations, change.Metadata.Annotations)
		w.publish(pod)
		return w.lives()
	}
	return apierrors.NewNotFound(corev1.Resource("pods"), o.GetName())
}

// evict is the API server's answer to an eviction, and where the claims are held
// against the truth.
func (w *world) evict(_ context.Context, _ client.Client, subresource string, o, body client.Object, _ ...client.SubResourceCreateOption) error {
	if subresource != "eviction" {
		w.Fatalf("subresource %s", subresource)
	}
	w.requests++
	if err := w.lives(); err != nil {
		return err
	}
	i := slices.IndexFunc(w.slots, func(s *slot) bool { return s.pod != nil && s.name == o.GetName() })
	if i < 0 {
		return apierrors.NewNotFound(corev1.Resource("pods"), o.GetName())
	}
	pod := w.slots[i].pod
	precondition := body.(*policyv1.Eviction).DeleteOptions.Preconditions
	uid := precondition.UID
	if uid == nil {
		w.Fatalf("%s is evicted, whoever it is", pod.slot.name)
		return nil
	}
	if string(*uid) != pod.uid {
		return apierrors.NewConflict(corev1.Resource("pods"), pod.slot.name, errors.New("the UID is another"))
	}
	if precondition.ResourceVersion != nil { // Kubernetes uses up the disruption budget before it compares the version
		w.Fatalf("the eviction of %s has a version as its precondition", pod.slot.name)
	}
	w.mayBeEvicted(pod)
	switch {
	case w.failing == "budget" || pod.slot.blocked:
		return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
	case w.failing == "before":
		return apierrors.NewInternalError(errors.New("an error"))
	}
	w.evicted[pod.uid] = true
	w.turns[pod.slot.owner.UID] = w.now
	w.forClient[pod.slot.name+" for "+w.seenClient(pod.slot.node).Sandbox.Identity]++
	pod.left = w.now
	w.publishWorkload(pod)
	if w.failing == "after" {
		return apierrors.NewInternalError(errors.New("the answer was lost"))
	}
	return w.lives()
}

// mayBeEvicted holds invariants 7 and 8.
func (w *world) mayBeEvicted(pod *workloadPod) {
	w.Helper()
	s := pod.slot
	switch {
	case w.evicted[pod.uid]:
		w.Fatalf("invariant 8: pod %s is restarted twice", s.name)
	case !pod.left.IsZero():
		w.Fatalf("invariant 7: pod %s is restarted while it terminates", s.name)
	case !s.atStake:
		w.Fatalf("invariant 8: pod %s is restarted, and its volumes are none of the client's network", s.name)
	case pod.mount == nil:
		w.Fatalf("invariant 8: pod %s is restarted, and nothing is mounted there yet", s.name)
	case !pod.dead():
		w.Fatalf("invariant 8: pod %s is restarted, and its mount is alive", s.name)
	case s.owner.IsZero():
		w.Fatalf("pod %s is restarted without a controller that recreates it", s.name)
	case pod.optOut:
		w.Fatalf("pod %s is restarted, and opts out", s.name)
	case w.seenValues[catalog.AutoDeletePod] != "true" && w.seenValues[catalog.AutoDeletePod] != "":
		w.Fatalf("pod %s is restarted, and the setting is %q", s.name, w.seenValues[catalog.AutoDeletePod])
	case slices.Contains(w.blacklist(w.seenValues), s.owner.GroupKind()):
		w.Fatalf("pod %s is restarted, and its kind is blacklisted", s.name)
	}
	if w.seenClient(s.node) == nil {
		w.Fatalf("pod %s is restarted, and its node has no client that could mount, or several", s.name)
	}
	if last, ok := w.turns[s.owner.UID]; ok && w.now.Before(last.Add(turn)) {
		w.Fatalf("pod %s is restarted %s after another of the same controller", s.name, w.now.Sub(last))
	}
	terminating := 0
	for _, other := range w.slots {
		if other.pod == nil || other.pod == pod || !leaving(w.workloadObject(other.pod), w.now) {
			continue
		}
		if other.node == s.node {
			terminating++
		}
	}
	if terminating >= perNode {
		w.Fatalf("pod %s is restarted while %d others terminate on its node", s.name, terminating)
	}
}

// seenClients are the clients of a node that the cache shows.
func (w *world) seenClients(node string) []storage.Client {
	clients, err := w.reconciler.Cached.ClientsOn(context.Background(), node)
	w.must(err)
	return clients
}

// seenClient is the only one of a node that could mount, as the cache shows it; nil if there is none or several.
func (w *world) seenClient(node string) *storage.Client {
	clients := w.seenClients(node)
	if len(clients) != 1 || !clients[0].Ready || clients[0].Terminating || !clients[0].Reaches(network) {
		return nil
	}
	return &clients[0]
}

// dead tells the truth: the mount's network is gone, or going with its client.
func (p *workloadPod) dead() bool {
	return p.mount != nil && (p.mount.gone || !p.mount.client.listed)
}

func (w *world) blacklist(values map[catalog.Name]string) []string {
	return catalog.Kinds(values[catalog.AutoDeletePodBlacklist]) // none by default
}

func (w *world) set(name catalog.Name, value string) {
	w.values[name] = value
	w.put(&v1alpha1.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: string(name)}, Value: &value})
}

// work lets the controller do one thing that is due. It reports whether there was any.
func (w *world) work() bool {
	for node, due := range w.timers {
		if !due.After(w.now) {
			delete(w.timers, node)
			w.queue[node] = true
		}
	}
	if len(w.queue) == 0 {
		return false
	}
	name := slices.Min(slices.Collect(maps.Keys(w.queue)))
	delete(w.queue, name)
	result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	switch {
	case w.dead:
		w.restart()
		return true
	case err != nil:
		result.RequeueAfter = 10 * time.Millisecond
	default:
		w.mustBeNoted(name)
	}
	if result.RequeueAfter > 0 && result.RequeueAfter < leftDead {
		w.busy = w.now
	}
	if due := w.now.Add(result.RequeueAfter); result.RequeueAfter > 0 && (w.timers[name].IsZero() || due.Before(w.timers[name])) {
		w.timers[name] = due
	}
	return true
}

// mustBeNoted wants the namespace of a client that was looked at on its pod: a
// controller that is restarted would not know a new one from it.
func (w *world) mustBeNoted(node string) {
	pod := w.clients[node]
	if pod == nil || pod.annotations[storage.NamespaceAnnotation] != "" {
		return
	}
	if c := w.seenClient(node); c != nil && pod.uid == c.UID {
		w.Fatalf("invariant 7: the namespace of client %s is not noted", c.Pod)
	}
}

// What the kubelet, Multus and the others do follows.

func (w *world) newUID() string {
	w.uids++
	return fmt.Sprint("uid-", w.uids)
}

// daemonSet makes the client pod of a node, if there is none.
func (w *world) daemonSet(node string) {
	if w.clients[node] != nil {
		return
	}
	c := &clientPod{uid: w.newUID(), name: "csi-" + node + "-" + fmt.Sprint(w.uids), node: node, listed: true, annotations: map[string]string{}, asks: network.String()}
	if w.twoInterfaces {
		c.asks = "kube-system/another@lhnet2," + c.asks
	}
	w.clients[node] = c
	w.publish(c)
}

// stepClient is what comes next in a client's start. It reports whether there was anything.
func (w *world) stepClient(c *clientPod) bool {
	switch {
	case c == nil || !c.left.IsZero():
		return false
	case c.began.IsZero():
		c.began = w.now
	case c.ns == nil:
		c.ns = &netns{began: w.now, client: c, mac: w.macs(), address: fmt.Sprint("10.42.0.", w.macs())}
		c.spaces = append(c.spaces, c.ns)
	case c.containers[0].IsZero():
		c.containers[0], c.ns.used = w.now, w.now
	case c.containers[1].IsZero():
		c.containers[1] = w.now
	default:
		return false
	}
	return true
}

func (w *world) macs() int { w.uids++; return w.uids }

// sandboxDies takes a client's network, and all that was mounted in it.
func (c *clientPod) sandboxDies() {
	if c.ns != nil {
		c.ns.gone = true
	}
	c.ns, c.containers = nil, [2]time.Time{}
}

// multus writes down what it has attached.
func (w *world) multus(c *clientPod) {
	if c == nil || c.ns == nil {
		return
	}
	text := fmt.Sprintf(`[{"name": "cbr0", "interface": "eth0", "ips": [%q], "default": true}, {"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "%012x"}`, c.ns.address, c.ns.mac)
	if c.ns.extra {
		text += `, {"name": "kube-system/x", "interface": "net1", "ips": ["192.168.7.3"]}`
	}
	c.annotations[storage.NetworkStatusAnnotation] = text + "]"
	w.publish(c)
}

// report is the kubelet writing down the status of a client.
func (w *world) report(c *clientPod) {
	if c == nil || c.began.IsZero() {
		return
	}
	before := condition(&c.status, corev1.PodReadyToStartContainers)
	c.status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(c.began.Truncate(time.Second))), PodIPs: c.status.PodIPs}
	if !w.oldKubelet {
		c.status.Conditions = append(c.status.Conditions, w.flip(before, corev1.PodReadyToStartContainers, c.ns != nil))
	}
	if c.ns != nil {
		c.status.PodIPs = []corev1.PodIP{{IP: c.ns.address}}
	}
	ready := true
	for _, started := range c.containers {
		c.status.ContainerStatuses = append(c.status.ContainerStatuses, containerStatus(started, time.Time{}, 0))
		ready = ready && !started.IsZero()
	}
	c.status.Conditions = append(c.status.Conditions, w.flip(nil, corev1.PodReady, ready))
	if ready {
		w.expect(c, before)
		c.seen = c.ns
	}
	if c.listed {
		w.publish(c)
	}
}

// expect works out when the namespace began that the API shows now, as far as
// it can be told from what it shows and what the controller has noted there.
func (w *world) expect(c *clientPod, before *corev1.PodCondition) {
	started := c.containers[0]
	if c.containers[1].Before(started) {
		started = c.containers[1]
	}
	started = started.Truncate(time.Second)
	if c.seen != nil && c.seen != c.ns {
		recorded, err := storage.ParseNetworkNamespace(c.annotations[storage.NamespaceAnnotation])
		w.must(err)
		if recorded.Identity != "" && recorded.Since.Before(started) {
			c.told = started
		}
	}
	c.ready = c.began.Truncate(time.Second)
	if made := condition(&c.status, corev1.PodReadyToStartContainers); made != nil {
		c.ready = made.LastTransitionTime.Time
		if started.Before(c.ready) {
			c.ready = started
		}
	}
	if c.told.After(c.ready) {
		c.ready = c.told
	}
}

// flip is a condition with its last transition, which a kubelet keeps while the status is the same.
func (w *world) flip(before *corev1.PodCondition, kind corev1.PodConditionType, yes bool) corev1.PodCondition {
	status := corev1.ConditionFalse
	if yes {
		status = corev1.ConditionTrue
	}
	c := corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(w.now.Truncate(time.Second))}
	if before != nil && before.Status == status {
		c.LastTransitionTime = before.LastTransitionTime
	}
	return c
}

func condition(status *corev1.PodStatus, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == kind {
			return &status.Conditions[i]
		}
	}
	return nil
}

func containerStatus(started, before time.Time, times int) corev1.ContainerStatus {
	c := corev1.ContainerStatus{RestartCount: int32(times)}
	last := corev1.ContainerState{}
	if !before.IsZero() {
		last.Terminated = &corev1.ContainerStateTerminated{StartedAt: metav1.NewTime(before.Truncate(time.Second))}
	}
	switch {
	case !started.IsZero():
		c.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(started.Truncate(time.Second))}
		c.LastTerminationState = last
	case !before.IsZero():
		c.State = last
	default:
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	return c
}

// publish stores a client pod as the API has it.
func (w *world) publish(c *clientPod) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: longhornProfile.Namespace, Name: c.name, UID: types.UID(c.uid), Labels: longhornProfile.ClientLabels,
			Annotations: maps.Clone(c.annotations), Finalizers: []string{"world/kubelet"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: longhornProfile.ClientDaemonSet, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: c.node}, Status: *c.status.DeepCopy(),
	}
	pod.Annotations[storage.NetworksAnnotation] = c.asks
	if !c.left.IsZero() {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(c.left.Truncate(time.Second)))
	}
	w.put(pod)
}

// lookAlike is a Ready pod with all that a client shows: of the DaemonSet it is a
// twin, else another owner's pod.
func (w *world) lookAlike(name, node string, twin bool) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: longhornProfile.Namespace, Name: name, UID: types.UID(w.newUID()), Labels: longhornProfile.ClientLabels,
			Annotations: map[string]string{
				storage.NetworksAnnotation:      network.String(),
				storage.NetworkStatusAnnotation: fmt.Sprintf(`[{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.9"], "mac": "%012x"}]`, w.macs()),
			},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "others", Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(w.now.Truncate(time.Second))), Conditions: []corev1.PodCondition{
			w.flip(nil, corev1.PodReadyToStartContainers, true), w.flip(nil, corev1.PodReady, true),
		}},
	}
	if twin {
		pod.OwnerReferences[0].Name = longhornProfile.ClientDaemonSet
	}
	w.others[name] = pod
	w.put(pod)
}

func (w *world) withoutLookAlikes() {
	for name, pod := range w.others {
		w.remove(pod)
		delete(w.others, name)
	}
}

// unlist takes a client from the API. What runs of it goes on for a while.
func (w *world) unlist(c *clientPod) {
	if c == nil {
		return
	}
	c.listed = false
	delete(w.clients, c.node)
	w.zombies = append(w.zombies, c)
	w.remove(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: longhornProfile.Namespace, Name: c.name}, Spec: corev1.PodSpec{NodeName: c.node}})
}

// ends is the end of what runs of a client that was unlisted.
func (w *world) ends(c *clientPod) {
	c.sandboxDies()
	w.zombies = slices.DeleteFunc(w.zombies, func(z *clientPod) bool { return z == c })
}

// fill makes the pod of a slot, if there is none.
func (w *world) fill(s *slot) {
	if s.pod != nil {
		return
	}
	s.pod = &workloadPod{slot: s, uid: w.newUID(), created: w.now, optOut: s.optOut}
	w.publishWorkload(s.pod)
}

// mounters are the clients on a node that can mount at this instant, those that
// were force-deleted included.
func (w *world) mounters(node string) []*netns {
	var able []*netns
	for _, c := range append(slices.Clone(w.zombies), w.clients[node]) {
		if c != nil && c.node == node && c.ns != nil && !c.containers[1].IsZero() {
			able = append(able, c.ns)
		}
	}
	return able
}

// stepWorkload is what comes next in a pod's start, with the client that is chosen
// where it has to be mounted. It reports whether there was anything.
func (w *world) stepWorkload(p *workloadPod, choose func([]*netns) *netns) bool {
	switch {
	case p == nil || !p.left.IsZero():
		return false
	case p.began.IsZero():
		p.began = w.now
	case p.mount == nil:
		able := w.mounters(p.slot.node)
		if len(able) == 0 || w.mountsInHost && p.slot.atStake && !p.slot.byValue {
			return false // the node is not on the network
		}
		if p.mount, p.mounted = choose(able), w.now; w.mountsInHost && p.slot.byValue {
			p.mount = w.host
		}
	case p.sandbox.IsZero():
		p.sandbox = w.now
	case p.started.IsZero():
		p.started = w.now
		if !p.before.IsZero() {
			p.times++
		}
	default:
		return false
	}
	return true
}

// stops is the end of what runs of a pod; its mounts stay.
func (p *workloadPod) stops() {
	if !p.started.IsZero() {
		p.before, p.started = p.started, time.Time{}
	}
}

// reportWorkload is the kubelet writing down the status of a pod.
func (w *world) reportWorkload(p *workloadPod) {
	if p == nil || p.began.IsZero() {
		return
	}
	before := condition(&p.status, corev1.PodReadyToStartContainers)
	p.status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: ptr.To(metav1.NewTime(p.began.Truncate(time.Second))),
		ContainerStatuses: []corev1.ContainerStatus{containerStatus(p.started, p.before, p.times)},
	}
	if !w.oldKubelet {
		p.status.Conditions = append(p.status.Conditions, w.flip(before, corev1.PodReadyToStartContainers, !p.sandbox.IsZero()))
	}
	p.status.Conditions = append(p.status.Conditions, w.flip(nil, corev1.PodReady, !p.started.IsZero()))
	w.publishWorkload(p)
}

func (w *world) workloadObject(p *workloadPod) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: p.slot.name, UID: types.UID(p.uid), CreationTimestamp: metav1.NewTime(p.created.Truncate(time.Second)),
			Finalizers: []string{"world/kubelet"},
		},
		Spec: corev1.PodSpec{NodeName: p.slot.node}, Status: *p.status.DeepCopy(),
	}
	if o := p.slot.owner; !o.IsZero() {
		pod.Labels = map[string]string{"app": o.Name, "statefulset.kubernetes.io/pod-name": pod.Name}
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: o.APIVersion, Kind: o.Kind, Name: o.Name, UID: types.UID(o.UID), Controller: ptr.To(true)}}
	}
	if p.optOut {
		pod.Annotations = map[string]string{storage.OptOutAnnotation: "true"}
	}
	for _, claim := range p.slot.claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	if !p.left.IsZero() {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(p.left.Truncate(time.Second)))
	}
	return pod
}

func (w *world) publishWorkload(p *workloadPod) {
	w.put(w.workloadObject(p))
}

func (w *world) vacate(s *slot) {
	if s.pod != nil {
		w.remove(w.workloadObject(s.pod))
		s.pod = nil
	}
}

// boots restarts a node: no mount and no sandbox outlives that. Its kubelet says
// so before it starts anything.
func (w *world) boots(node string) {
	for _, c := range slices.Clone(w.zombies) {
		if c.node == node {
			w.ends(c)
		}
	}
	if c := w.clients[node]; c != nil {
		c.sandboxDies()
		w.report(c)
	}
	for _, s := range w.slots {
		if p := s.pod; p != nil && s.node == node {
			p.stops()
			p.mount, p.sandbox = nil, time.Time{}
			w.reportWorkload(p)
		}
	}
}
