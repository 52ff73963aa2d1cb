package workloads

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// netns is a network namespace of a client.
type netns struct {
	began, used time.Time // used: since a container runs in it
	client      *clientPod
	gone        bool
	address     string
	mac         int
	extra       bool // an interface was added to the running pod
}

// clientPod is a CSI plugin pod. The second of its two containers mounts.
type clientPod struct {
	uid        types.UID
	name, node string
	left       time.Time // when its deletion began
	listed     bool      // in the API; a force-deleted pod runs on for a while
	created    time.Time
	began      time.Time
	ns         *netns
	spaces     []*netns // all its namespaces
	containers [2]time.Time
	requests   string // networks

	// annotations and status are those in the API.
	annotations map[string]string
	status      corev1.PodStatus
	// reported is the namespace of the kubelet's last report, noted that of the controller's last note.
	reported, noted *netns
	version         string // of the pod in the API
	// inferred is the start of the newest namespace that the record and the containers show, but not the condition.
	inferred, ready time.Time
}

// workloadPod is a pod that uses volumes.
type workloadPod struct {
	slot     *slot
	uid      types.UID
	left     time.Time // when its deletion began
	optOut   bool
	created  time.Time
	began    time.Time // accepted by the kubelet
	mount    *netns    // where its volumes were mounted
	mounted  time.Time
	server   netip.Addr // of volume v-shared, as mounted
	unseen   bool       // mounted on the node while the controller did not know, and never will
	sandbox  time.Time
	started  time.Time // of the present container
	before   time.Time // start of the container before
	restarts int
	status   corev1.PodStatus
}

// slot is a place for which a controller creates a pod again and again.
type slot struct {
	name, node      string
	owner           rwx.Owner // zero is a bare pod
	claims          []string
	inClientNetwork bool                   // its volumes may be mounted through the client's network
	refused         *apierrors.StatusError // the answer to evictions; nil evicts
	optOut          bool                   // in the template
	pod             *workloadPod
}

// newSlot is a slot on node-1. owner is kind/name; "" is none.
func newSlot(name, owner string, claims ...string) *slot {
	s := &slot{name: name, node: "node-1", claims: claims, inClientNetwork: slices.Contains(claims, "shared") || slices.Contains(claims, "plain")}
	if kind, set, ok := strings.Cut(owner, "/"); ok {
		s.owner = rwx.Owner{APIVersion: "apps/v1", Kind: kind, Name: set, UID: "uid-" + set}
	}
	return s
}

// byValue reports whether the volume is on the cluster network, and mounted where the setting says.
func (s *slot) byValue() bool { return slices.Contains(s.claims, "plain") }

// dead reports whether the mount's network is gone, or ends with its client, or its server is elsewhere.
func (w *world) dead(p *workloadPod) bool {
	return p.mount != nil && (p.mount.gone || !p.mount.client.listed) || w.lostServer(p)
}

func (w *world) lostServer(p *workloadPod) bool { return p.server.IsValid() && p.server != w.server }

func (w *world) next() int {
	w.uids++
	return w.uids
}

func (w *world) newUID() types.UID { return types.UID(fmt.Sprint("uid-", w.next())) }

// seconds is a time as the API has it.
func seconds(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

// onNode is the time by a node's clock.
func (w *world) onNode(node string) time.Time { return w.Now().Add(-w.clocks[node]) }

// setClock of a node back, or right again.
func (w *world) setClock(node string, behind time.Duration) {
	w.clocks[node], w.clockSet[node] = behind, w.Now()
}

// createClient creates the client pod of a node, if there is none.
func (w *world) createClient(node string) {
	if w.clients[node] != nil {
		return
	}
	c := &clientPod{uid: w.newUID(), node: node, created: w.Now(), listed: true, annotations: map[string]string{}, requests: network.String()}
	c.name = fmt.Sprintf("csi-%s-%d", node, w.uids)
	if w.twoInterfaces {
		c.requests = "kube-system/another@lhnet2," + c.requests
	}
	w.clients[node] = c
	w.publish(c)
}

// stepClient is the next step of a client's start. It reports whether there was a step.
func (w *world) stepClient(c *clientPod) bool {
	switch {
	case c == nil || !c.left.IsZero():
		return false
	case c.began.IsZero():
		c.began = w.onNode(c.node)
	case c.ns == nil:
		c.ns = &netns{began: w.onNode(c.node), client: c, mac: w.next(), address: fmt.Sprint("10.42.0.", w.next())}
		c.spaces = append(c.spaces, c.ns)
	case c.containers[0].IsZero():
		c.containers[0], c.ns.used = w.onNode(c.node), w.onNode(c.node)
	case c.containers[1].IsZero():
		c.containers[1] = w.onNode(c.node)
	default:
		return false
	}
	return true
}

// loseSandbox ends a client's network namespace, and all mounts in it.
func (c *clientPod) loseSandbox() {
	if c == nil {
		return
	}
	if c.ns != nil {
		c.ns.gone = true
	}
	c.ns, c.containers = nil, [2]time.Time{}
}

// multus reports the interfaces of a client.
func (w *world) multus(c *clientPod) {
	if c == nil || c.ns == nil {
		return
	}
	text := fmt.Sprintf(`[{"name": "cbr0", "interface": "eth0", "ips": [%q], "default": true}, {"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "%012x"}`, c.ns.address, c.ns.mac)
	if c.ns.extra {
		text += `, {"name": "kube-system/x", "interface": "net1", "ips": ["192.168.7.3"]}`
	}
	c.annotations[multus.NetworkStatusAnnotation] = text + "]"
	w.publish(c)
}

// report is the kubelet's report of a client's status.
func (w *world) report(c *clientPod) {
	if c == nil || c.began.IsZero() {
		return
	}
	before := condition(&c.status, corev1.PodReadyToStartContainers)
	c.status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(seconds(c.began)), PodIPs: c.status.PodIPs}
	if !w.oldKubelet {
		c.status.Conditions = append(c.status.Conditions, w.condition(c.node, before, corev1.PodReadyToStartContainers, c.ns != nil))
	}
	if c.ns != nil {
		c.status.PodIPs = []corev1.PodIP{{IP: c.ns.address}}
	}
	ready := !c.containers[0].IsZero() && !c.containers[1].IsZero()
	for _, started := range c.containers {
		c.status.ContainerStatuses = append(c.status.ContainerStatuses, containerStatus(started, time.Time{}, 0))
	}
	c.status.Conditions = append(c.status.Conditions, w.condition(c.node, nil, corev1.PodReady, ready))
	if ready && c.reported != c.ns {
		w.inferNamespace(c)
		c.reported = c.ns
	}
	if c.listed {
		w.publish(c)
	}
}

// isNoted reports whether the controller has noted the present namespace of a client.
func (c *clientPod) isNoted() bool { return c != nil && c.ns != nil && c.noted == c.ns }

func (w *world) isReportedByMultus(c *clientPod) bool {
	return strings.Contains(c.annotations[multus.NetworkStatusAnnotation], fmt.Sprintf("%012x", c.ns.mac))
}

// inferNamespace computes when the present namespace began, as far as the API and the controller's notes show it.
func (w *world) inferNamespace(c *clientPod) {
	started := c.containers[0]
	if c.containers[1].Before(started) {
		started = c.containers[1]
	}
	started = started.Truncate(time.Second)
	if c.reported != nil && c.reported != c.ns {
		recorded := testkit.Value[rwx.NetworkNamespace](w.TB)(rwx.ParseNetworkNamespace(c.annotations[rwx.NamespaceAnnotation]))
		if recorded.Identity != "" && recorded.Since.Before(started) {
			c.inferred = started
		}
	}
	c.ready = c.began.Truncate(time.Second)
	if made := condition(&c.status, corev1.PodReadyToStartContainers); made != nil {
		c.ready = made.LastTransitionTime.Time
		if started.Before(c.ready) {
			c.ready = started
		}
	}
	if c.inferred.After(c.ready) {
		c.ready = c.inferred
	}
}

// condition is a pod's condition. Its last transition stays while the status is the same.
func (w *world) condition(node string, before *corev1.PodCondition, kind corev1.PodConditionType, isTrue bool) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: seconds(w.onNode(node))}
	if isTrue {
		c.Status = corev1.ConditionTrue
	}
	if before != nil && before.Status == c.Status {
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

func containerStatus(started, before time.Time, restarts int) corev1.ContainerStatus {
	c := corev1.ContainerStatus{RestartCount: int32(restarts)}
	last := corev1.ContainerState{}
	if !before.IsZero() {
		last.Terminated = &corev1.ContainerStateTerminated{StartedAt: seconds(before)}
	}
	switch {
	case !started.IsZero():
		c.State.Running, c.LastTerminationState = &corev1.ContainerStateRunning{StartedAt: seconds(started)}, last
	case !before.IsZero():
		c.State = last
	default:
		c.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
	}
	return c
}

// clientObject is a pod with the labels of a client, of a DaemonSet.
func clientObject(name, node, set string, uid types.UID) *corev1.Pod {
	pod := objects.Pod(objects.Longhorn.Namespace, name, node)
	pod.UID, pod.Labels, pod.Finalizers = uid, objects.Longhorn.ClientLabels, []string{"world/kubelet"}
	objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", set)(pod)
	return pod
}

// publish stores a client pod as it is in the API.
func (w *world) publish(c *clientPod) {
	pod := clientObject(c.name, c.node, objects.Longhorn.ClientDaemonSet, c.uid)
	pod.Annotations, pod.Status, pod.CreationTimestamp = maps.Clone(c.annotations), *c.status.DeepCopy(), seconds(c.created)
	pod.Annotations[multus.NetworksAnnotation] = c.requests
	if !c.left.IsZero() {
		pod.DeletionTimestamp = ptr.To(seconds(c.left))
	}
	w.put(pod)
	c.version = pod.ResourceVersion
}

// addLookAlike adds a Ready pod that looks like a client. A twin belongs to the DaemonSet of the clients.
func (w *world) addLookAlike(name, node string, twin bool) {
	if w.others[name] != nil {
		return
	}
	pod := clientObject(name, node, "others", w.newUID())
	if twin {
		pod.OwnerReferences[0].Name = objects.Longhorn.ClientDaemonSet
	}
	pod.Annotations = map[string]string{
		multus.NetworksAnnotation:      network.String(),
		multus.NetworkStatusAnnotation: fmt.Sprintf(`[{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.9"], "mac": "%012x"}]`, w.next()),
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: ptr.To(seconds(w.Now())), Conditions: []corev1.PodCondition{
		w.condition(node, nil, corev1.PodReadyToStartContainers, true), w.condition(node, nil, corev1.PodReady, true),
	}}
	w.others[name] = pod
	w.put(pod)
}

func (w *world) removeLookAlikes() {
	for name, pod := range w.others {
		w.remove(pod)
		delete(w.others, name)
	}
}

// forceDelete removes a client from the API. Its containers run on.
func (w *world) forceDelete(c *clientPod) {
	if c == nil {
		return
	}
	c.listed = false
	delete(w.clients, c.node)
	w.zombies = append(w.zombies, c)
	w.remove(clientObject(c.name, c.node, "", c.uid))
}

// stopZombie stops the containers of a force-deleted client.
func (w *world) stopZombie(c *clientPod) {
	c.loseSandbox()
	w.zombies = slices.DeleteFunc(w.zombies, func(z *clientPod) bool { return z == c })
}

// removeClient removes a client with its containers.
func (w *world) removeClient(c *clientPod) {
	w.forceDelete(c)
	w.stopZombie(c)
}

// fill creates the pod of a slot, if there is none.
func (w *world) fill(s *slot) {
	if s.pod == nil {
		s.pod = &workloadPod{slot: s, uid: w.newUID(), created: w.Now(), optOut: s.optOut}
		w.publishWorkload(s.pod)
	}
}

// mounters are the namespaces of the clients that can mount on a node now, also of force-deleted clients.
func (w *world) mounters(node string) []*netns {
	var able []*netns
	for _, c := range append(slices.Clone(w.zombies), w.clients[node]) {
		if c != nil && c.node == node && c.ns != nil && !c.containers[1].IsZero() {
			able = append(able, c.ns)
		}
	}
	return able
}

// newest chooses the newest client.
func newest(able []*netns) *netns { return able[len(able)-1] }

// stepWorkload is the next step of a pod's start. choose selects the client that mounts. It reports whether there was a step.
func (w *world) stepWorkload(p *workloadPod, choose func([]*netns) *netns) bool {
	switch {
	case p == nil || !p.left.IsZero():
		return false
	case p.began.IsZero():
		p.began = w.onNode(p.slot.node)
	case p.mount == nil:
		able := w.mounters(p.slot.node)
		if len(able) == 0 || w.mountsInHost && p.slot.inClientNetwork && !p.slot.byValue() {
			return false // the node is not on the network
		}
		if p.mount = choose(able); w.mountsInHost && p.slot.byValue() {
			p.mount = w.host
		}
		p.mounted = w.onNode(p.slot.node)
		if slices.Contains(p.slot.claims, "shared") {
			p.server = w.server
		}
	case p.sandbox.IsZero():
		p.sandbox = w.onNode(p.slot.node)
	case p.started.IsZero():
		p.started = w.onNode(p.slot.node)
		if !p.before.IsZero() {
			p.restarts++
		}
	default:
		return false
	}
	return true
}

// stop stops the container of a pod; its mounts stay.
func (p *workloadPod) stop() {
	if p != nil && !p.started.IsZero() {
		p.before, p.started = p.started, time.Time{}
	}
}

// reportWorkload is the kubelet's report of a pod's status.
func (w *world) reportWorkload(p *workloadPod) {
	if p == nil || p.began.IsZero() {
		return
	}
	before := condition(&p.status, corev1.PodReadyToStartContainers)
	p.status = corev1.PodStatus{
		Phase: corev1.PodRunning, StartTime: ptr.To(seconds(p.began)),
		ContainerStatuses: []corev1.ContainerStatus{containerStatus(p.started, p.before, p.restarts)},
	}
	if !w.oldKubelet {
		p.status.Conditions = append(p.status.Conditions, w.condition(p.slot.node, before, corev1.PodReadyToStartContainers, !p.sandbox.IsZero()))
	}
	p.status.Conditions = append(p.status.Conditions, w.condition(p.slot.node, nil, corev1.PodReady, !p.started.IsZero()))
	w.publishWorkload(p)
}

func (w *world) workloadObject(p *workloadPod) *corev1.Pod {
	pod := objects.Pod("default", p.slot.name, p.slot.node, p.slot.claims...)
	pod.UID, pod.CreationTimestamp, pod.Finalizers, pod.Status = p.uid, seconds(p.created), []string{"world/kubelet"}, *p.status.DeepCopy()
	if o := p.slot.owner; !o.IsZero() {
		pod.Labels = map[string]string{"app": o.Name, "statefulset.kubernetes.io/pod-name": pod.Name}
		objects.OwnedBy[*corev1.Pod](o.APIVersion, o.Kind, o.Name)(pod)
		pod.OwnerReferences[0].UID = types.UID(o.UID)
	}
	if p.optOut {
		pod.Annotations = map[string]string{rwx.OptOutAnnotation: "true"}
	}
	if !p.left.IsZero() {
		pod.DeletionTimestamp = ptr.To(seconds(p.left))
	}
	return pod
}

func (w *world) publishWorkload(p *workloadPod) { w.put(w.workloadObject(p)) }

// terminate begins the deletion of a pod.
func (w *world) terminate(p *workloadPod) {
	if p != nil && p.left.IsZero() {
		p.left = w.Now()
		w.publishWorkload(p)
	}
}

// vacate removes the pod of a slot.
func (w *world) vacate(s *slot) {
	if s.pod != nil {
		w.remove(w.workloadObject(s.pod))
		s.pod = nil
	}
}

// boot gives a node a new boot ID.
func (w *world) boot(name string) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	node.Status.NodeInfo.BootID = fmt.Sprint("boot-", w.next())
	w.put(node)
}

// killRuntime ends all sandboxes of a node. The kubelet creates them again and keeps the mounts: pkg/kubelet/volumemanager
// mounts a volume of a running pod again only if its CSIDriver has requiresRepublish. Longhorn's has not.
func (w *world) killRuntime(node string) {
	for _, c := range slices.Clone(w.zombies) {
		if c.node == node {
			w.stopZombie(c)
		}
	}
	w.clients[node].loseSandbox()
	for _, s := range w.slots {
		if p := s.pod; p != nil && s.node == node {
			p.stop()
			p.sandbox = time.Time{}
		}
	}
}

// reboot ends all mounts and sandboxes of a node. Its kubelet reports them before it starts any.
func (w *world) reboot(node string) {
	w.boot(node)
	for _, c := range slices.Clone(w.zombies) {
		if c.node == node {
			w.stopZombie(c)
		}
	}
	w.clients[node].loseSandbox()
	w.report(w.clients[node])
	for _, s := range w.slots {
		if p := s.pod; p != nil && s.node == node {
			p.stop()
			p.mount, p.server, p.sandbox = nil, netip.Addr{}, time.Time{}
			w.reportWorkload(p)
		}
	}
}
