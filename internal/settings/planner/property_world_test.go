package planner

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// This file has the cluster of the random model: components, their traits, and what they need to start.

type fleetVolume struct {
	engine     string
	shared     bool
	attachedTo string // "" is detached
	replicas   []string
}

type fleetPod struct {
	catalog.Component
	leaves bool // is removed after termination
}

type fleetTemplate struct {
	catalog.Component
	revision int
	pods     map[string]*templatePod // by node, of a Deployment by number
}

type templatePod struct {
	revision int
	ready    bool
}

func (p *fleetPod) setReady(m *fleetModel, ready bool) { p.Ready, p.Version = ready, m.next() }

func (x *fleetTemplate) stop() {
	for _, p := range x.pods {
		p.ready = false
	}
}

type fleetModel struct {
	now         time.Time
	own, system map[catalog.Name]string
	reported    map[catalog.Name]Reported // durable
	written     map[catalog.Name]int      // version of Fairlead's own setting
	nodes       catalog.Nodes
	volumes     map[string]*fleetVolume
	pods        map[string]*fleetPod
	templates   map[string]*fleetTemplate
	network     multus.Attachment // of shared volumes
	classGone   bool              // class "critical" does not exist
	networkGone bool              // network "b" does not exist
	copying     bool              // the backing image manager is in use
	held        map[string]Hold   // in memory
	views       []view
	counter     int

	demands map[catalog.Trait][]modelDemand // by collect
	seen    []catalog.Component

	changes   int                   // of values and nodes
	restarted map[string]int        // by pod: changes when it was last restarted
	touched   map[catalog.Name]bool // components were changed from the default
}

const (
	// zone is the node selector that labelled nodes match.
	zone = "zone:a"
	// nowhere is a valid value with which no pod starts.
	nowhere = "k:NoExecute"
	// tolerant and evictable tolerate the taints of the model.
	tolerant, evictable = "a=b:NoSchedule", "x:NoExecute"
)

// byHand are resources that a user gave csi-attacher.
const byHand = `{"csi-attacher":{"requests":{"cpu":"5m"}}}`

func newFleet(v2 bool) *fleetModel {
	m := &fleetModel{
		now: midday, own: map[catalog.Name]string{}, system: map[catalog.Name]string{catalog.V2DataEngine: strconv.FormatBool(v2)},
		reported: map[catalog.Name]Reported{}, written: map[catalog.Name]int{}, held: map[string]Hold{}, restarted: map[string]int{}, touched: map[catalog.Name]bool{},
		nodes: catalog.Nodes{}, pods: map[string]*fleetPod{}, templates: map[string]*fleetTemplate{},
		volumes: map[string]*fleetVolume{
			"pvc-0": {engine: catalog.EngineV1, replicas: []string{"node-2"}},
			"pvc-1": {engine: catalog.EngineV1, replicas: []string{"node-1", "node-3"}, shared: true},
			"pvc-2": {engine: catalog.EngineV2, replicas: []string{"node-3"}},
		},
	}
	for i := 1; i <= 3; i++ {
		n := catalog.Node{Storage: true}
		nodeAtRest(&n)
		m.nodes[fmt.Sprintf("node-%d", i)] = n
	}
	m.runEngines()
	m.addPod(catalog.Component{Kind: catalog.BackingImageManager, Name: "bim", Node: "node-1"})
	for _, c := range []catalog.Component{
		{Kind: catalog.Deployment, Name: "csi-attacher"}, {Kind: catalog.Deployment, Name: "csi-provisioner"},
		{Kind: catalog.DaemonSetComponent, Name: "longhorn-csi-plugin", Client: true}, {Kind: catalog.DaemonSetComponent, Name: "engine-image-ei-1"},
	} {
		c.Built, c.Version = m.installed(c), m.next()
		x := &fleetTemplate{Component: c, pods: map[string]*templatePod{}}
		m.templates[c.Name] = x
		for range 3 {
			m.roll(x)
		}
	}
	for _, p := range m.pods {
		p.Stopped, p.Ready = false, true
	}
	return m
}

func (m *fleetModel) next() string {
	m.counter++
	return strconv.Itoa(m.counter)
}

// set sets a value in the storage system's group, setOwn in Fairlead's.
func (m *fleetModel) set(name catalog.Name, value string) {
	m.system[name] = value
	m.changes++
}

func (m *fleetModel) setOwn(name catalog.Name, value string) {
	m.own[name] = value
	m.written[name]++
	m.changes++
}

// isMisplaced: Fairlead's group has a value that belongs to the other group, or has no effect.
func (m *fleetModel) isMisplaced(d catalog.Definition) bool {
	own, set := m.own[d.Name]
	theirs, has := m.system[d.Name]
	_, replaced := m.system[d.ReplacedBy]
	switch {
	case !set:
		return false
	case has:
		one, bad := d.Normalize(own)
		other, alsoBad := d.Normalize(theirs)
		return own != theirs && (bad != nil || alsoBad != nil || one != other)
	}
	return replaced || !slices.Contains([]catalog.Name{catalog.CSIResources, catalog.EngineImageProbePeriod, catalog.StorageNetworkForRWX, catalog.EndpointNetworkForRWX}, d.Name)
}

// nodeAtRest removes all disturbances of a node.
func nodeAtRest(n *catalog.Node) {
	n.Ready, n.Cordoned, n.StorageDown, n.Taints = true, false, false, nil
	n.Labels, n.AllocatableHugepagesMiB, n.AllocatableMilliCPU = map[string]string{"zone": "a"}, 8192, 4000
}

var disturbances = []string{"kubelet", "cordon", "storage system", "label", "huge pages", "CPU", "CPU of its own", "NoSchedule", "NoExecute"}

var taints = map[string]corev1.Taint{
	"kubelet":    {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
	"NoSchedule": {Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule},
	"NoExecute":  {Key: "x", Effect: corev1.TaintEffectNoExecute},
}

// disturb returns a disturbance of a node, or its end.
func disturb(do string) func(*catalog.Node) {
	return func(n *catalog.Node) {
		if taint, ok := taints[do]; ok {
			if i := slices.Index(n.Taints, taint); i >= 0 {
				n.Taints = slices.Delete(slices.Clone(n.Taints), i, i+1)
			} else {
				n.Taints = append(slices.Clone(n.Taints), taint)
			}
		}
		switch do {
		case "kubelet":
			n.Ready = !n.Ready
		case "cordon":
			n.Cordoned = !n.Cordoned
		case "storage system":
			n.StorageDown = !n.StorageDown
		case "label":
			if n.Labels != nil {
				n.Labels = nil
			} else {
				n.Labels = map[string]string{"zone": "a"}
			}
		case "huge pages":
			n.AllocatableHugepagesMiB = 8192 + 1024 - n.AllocatableHugepagesMiB
		case "CPU":
			n.AllocatableMilliCPU = 4000 + 400 - n.AllocatableMilliCPU
		case "CPU of its own":
			n.InstanceManagerMilliCPU = 500 - n.InstanceManagerMilliCPU
		}
	}
}

func (m *fleetModel) changeNode(name string, change func(*catalog.Node)) {
	n := m.nodes[name]
	change(&n)
	m.nodes[name] = n
	m.changes++
}

// runEngines is the storage system: it creates the instance managers of enabled engines.
func (m *fleetModel) runEngines() {
	for engine, name := range map[string]catalog.Name{catalog.EngineV1: catalog.V1DataEngine, catalog.EngineV2: catalog.V2DataEngine} {
		text, set := m.system[name]
		if set && text != "true" || !set && engine == catalog.EngineV2 {
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(m.nodes)) {
			im := engine + "-" + n
			if m.pods[im] == nil && m.nodes[n].Ready && !m.nodes[n].StorageDown && (engine == catalog.EngineV1 || !m.nodes[n].DisabledV2) {
				m.addPod(catalog.Component{Kind: catalog.InstanceManager, Name: im, Node: n, Engine: engine})
			}
		}
	}
}

func (m *fleetModel) addPod(c catalog.Component) {
	c.Missing = true
	m.pods[c.Name] = &fleetPod{Component: c}
	m.make(m.pods[c.Name])
}

// byItself are traits for which this version of the storage system has no setting.
var byItself = map[catalog.Trait]string{catalog.LivenessTimeout: "4", catalog.LogPathTrait: "/var/log", catalog.CPUMask: "0x2", catalog.MemorySize: "3072", catalog.PriorityClassName: "installed"}

// installed returns the traits that the storage system gives a component, by its own settings only.
func (m *fleetModel) installed(c catalog.Component) map[catalog.Trait]string {
	built := builtBy(catalog.Resolve(nil, nil), c, m.nodes)
	for trait, text := range byItself {
		if _, exists := built[trait]; exists {
			built[trait] = text
		}
	}
	if c.Name == "csi-attacher" {
		built[catalog.Resources] = byHand
	}
	c.Built = built // the CPU request follows from the number of cores
	for _, d := range slices.Backward(catalog.All()) {
		text, has := m.system[d.Name]
		if !has || d.Wants == nil || d.Trait == catalog.DataEngine {
			continue
		}
		normal, err := normalOrDefault(d, text)
		if want, concerns := d.Wants(normal, c, m.nodes); concerns {
			built[d.Trait] = want
		}
		if d.Name == catalog.PriorityClass && err != nil {
			built[d.Trait] = text
		}
	}
	return built
}

// make is the storage system: it creates a pod.
func (m *fleetModel) make(p *fleetPod) {
	built := m.installed(p.Component)
	if !m.isMade(p.Component) || m.isRefused(built) {
		return
	}
	p.UID, p.Version, p.Built = m.next(), m.next(), built
	p.Missing, p.Terminating, p.Ready, p.Stopped = false, false, false, true
}

// lose ends a pod.
func (m *fleetModel) lose(p *fleetPod) {
	p.Terminating, p.Missing, p.Ready, p.Stopped, p.UID = false, true, false, false, ""
	if p.leaves || p.Kind == catalog.ShareManager && len(m.uses(p.Component)) == 0 {
		delete(m.pods, p.Name)
	}
}

// progress moves a pod one step on: terminated, recreated, started, Ready.
func (m *fleetModel) progress(name string) {
	p := m.pods[name]
	switch {
	case p == nil || !m.nodes[p.Node].Ready:
	case p.Terminating && p.Ready:
		p.setReady(m, false)
	case p.Terminating:
		m.lose(p)
	case p.Missing:
		m.make(p)
	case p.Kind != catalog.ShareManager && !m.stays(p.Built, m.nodes[p.Node], false):
		m.lose(p) // evicted
	case p.Stopped && !m.fits(p.Component, p.Built): // the kubelet refuses it
		m.lose(p)
	case p.Stopped && m.starts(p.Built):
		p.Stopped, p.Version = false, m.next()
	case !p.Stopped && !p.Ready:
		p.setReady(m, true)
	}
}

// roll is a template's own controller: it moves one pod on.
func (m *fleetModel) roll(x *fleetTemplate) {
	starts := m.starts(x.Built)
	if x.Kind == catalog.Deployment { // the new pod starts first
		for _, number := range []string{"0", "1"} {
			p := x.pods[number]
			if (p == nil || !p.ready || p.revision != x.revision) && starts && !m.isRefused(x.Built) && m.takers(x.Component, x.Built) > 0 {
				x.pods[number] = &templatePod{x.revision, true}
				return
			}
		}
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
		p, node := x.pods[name], m.nodes[name]
		switch {
		case p != nil && !m.stays(x.Built, node, true):
			delete(x.pods, name)
			return
		case !m.takes(x.Component, x.Built, node):
		case p == nil || p.revision != x.revision:
			delete(x.pods, name)
			if !m.isRefused(x.Built) {
				x.pods[name] = &templatePod{x.revision, starts}
			}
			return
		case !p.ready && starts:
			p.ready = true
			return
		}
	}
}

// rollNetwork is the roll-out of the network for RWX volumes, in one step.
func (m *fleetModel) rollNetwork() {
	desired, err := catalog.SharedVolumeNetwork(m.values(), longhorn.DefaultNames())
	if err == nil && len(catalog.SharedVolumeGate(m.facts().Rollout.Volumes)) == 0 {
		m.network = desired
	}
}

func (m *fleetModel) uses(c catalog.Component) []string {
	var uses []string
	for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
		v := m.volumes[name]
		switch {
		case v.attachedTo == "":
		case c.Kind == catalog.ShareManager && c.Name == "share-manager-"+name:
			uses = append(uses, name)
		case c.Kind == catalog.InstanceManager && c.Engine == v.engine && v.attachedTo == c.Node:
			uses = append(uses, name+"-e-0")
		case c.Kind == catalog.InstanceManager && c.Engine == v.engine && slices.Contains(v.replicas, c.Node):
			uses = append(uses, name+"-r-0")
		}
	}
	if c.Kind == catalog.BackingImageManager && m.copying {
		uses = append(uses, "backing-image")
	}
	return uses
}

// attachedOf counts the attached volumes of an engine, or of all engines.
func (m *fleetModel) attachedOf(engine string) int {
	n := 0
	for _, v := range m.volumes {
		if v.attachedTo != "" && (engine == "" || v.engine == engine) {
			n++
		}
	}
	return n
}

// attach attaches a volume. Its instance managers exist, but need not run yet.
func (m *fleetModel) attach(name, node string) {
	v := m.volumes[name]
	if v.attachedTo != "" {
		return
	}
	for _, n := range append([]string{node}, v.replicas...) {
		if p := m.pods[v.engine+"-"+n]; p == nil || p.Terminating || p.Missing {
			return // no instance is placed there
		}
	}
	v.attachedTo = node
	if share := "share-manager-" + name; v.shared && m.pods[share] == nil {
		m.addPod(catalog.Component{Kind: catalog.ShareManager, Name: share, Node: node})
	}
}

// isRefused: the API server refuses pods of a missing class.
func (m *fleetModel) isRefused(built map[catalog.Trait]string) bool {
	class := built[catalog.PriorityClassName]
	return class != "" && class != "installed" && (class != "critical" || m.classGone)
}

// starts: the containers of an accepted pod can run, and its network exists.
func (m *fleetModel) starts(built map[catalog.Trait]string) bool {
	return built[catalog.Tolerations] != nowhere && !(m.networkGone && strings.HasPrefix(built[catalog.StorageAttachment], "kube-system/b@"))
}

func tolerated(built map[catalog.Trait]string, taint corev1.Taint, ofDaemonSet bool) bool {
	switch taint {
	case taints["kubelet"]:
		return ofDaemonSet
	case taints["NoSchedule"]:
		return strings.Contains(built[catalog.Tolerations], tolerant)
	}
	return strings.Contains(built[catalog.Tolerations], evictable)
}

func labelled(selector string, n catalog.Node) bool {
	return selector == "" || selector == "zone:"+n.Labels["zone"]
}

// stays: the node does not evict a running pod.
func (m *fleetModel) stays(built map[catalog.Trait]string, n catalog.Node, ofDaemonSet bool) bool {
	return (!ofDaemonSet || labelled(built[catalog.NodeSelector], n)) && !slices.ContainsFunc(n.Taints, func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute && !tolerated(built, taint, ofDaemonSet)
	})
}

// takes: the node accepts a new pod of a template.
func (m *fleetModel) takes(c catalog.Component, built map[catalog.Trait]string, n catalog.Node) bool {
	ofDaemonSet := c.Kind == catalog.DaemonSetComponent
	return labelled(built[catalog.NodeSelector], n) && (ofDaemonSet || !n.Cordoned) &&
		!slices.ContainsFunc(n.Taints, func(taint corev1.Taint) bool { return !tolerated(built, taint, ofDaemonSet) })
}

// takers counts the nodes that accept new pods of a template.
func (m *fleetModel) takers(c catalog.Component, built map[catalog.Trait]string) int {
	n := 0
	for _, node := range m.nodes {
		if m.takes(c, built, node) {
			n++
		}
	}
	return n
}

// fits: the kubelet accepts the pod.
func (m *fleetModel) fits(c catalog.Component, built map[catalog.Trait]string) bool {
	if c.Kind == catalog.ShareManager {
		return true // the scheduler finds a node
	}
	node := m.nodes[c.Node]
	milliCPU, _ := strconv.Atoi(strings.TrimSuffix(built[catalog.CPURequest], "m"))
	memory, _ := strconv.Atoi(built[catalog.MemorySize])
	return labelled(built[catalog.NodeSelector], node) && m.stays(built, node, false) &&
		int64(milliCPU) <= node.AllocatableMilliCPU && (c.Engine != catalog.EngineV2 || int64(memory) <= node.AllocatableHugepagesMiB)
}

// isMade: the storage system creates the missing pod.
func (m *fleetModel) isMade(c catalog.Component) bool {
	node := m.nodes[c.Node]
	return node.Ready && !node.StorageDown && !(c.Kind == catalog.InstanceManager && node.Cordoned)
}

// isUp: the pod can become Ready.
func (m *fleetModel) isUp(c catalog.Component) bool {
	node := m.nodes[c.Node]
	return !isPod(c) || node.Ready && !node.StorageDown && !(c.Missing && (!m.isMade(c) || !m.fits(c, m.installed(c))))
}

// runs: the component is Ready, and a DaemonSet matches a node.
func runs(c catalog.Component) bool {
	return c.Ready && !c.Terminating && !c.Missing && (c.Kind != catalog.DaemonSetComponent || c.Total > 0)
}

// isExcluded: the selector in effect excludes the node of a bound pod.
func (m *fleetModel) isExcluded(c catalog.Component) bool {
	if c.Kind != catalog.InstanceManager && c.Kind != catalog.BackingImageManager {
		return false
	}
	selector := c.Built[catalog.NodeSelector]
	if text, has := m.system[catalog.SystemManagedNodeSelector]; has && text != "zone" {
		selector = text
	}
	return !labelled(selector, m.nodes[c.Node])
}

// facts returns the live state of the cluster.
func (m *fleetModel) facts() Facts {
	f := Facts{
		Names: longhorn.DefaultNames(), Values: m.values(), Reported: maps.Clone(m.reported), Now: m.now, Nodes: maps.Clone(m.nodes),
		OwnValues: maps.Clone(m.own), SystemValues: maps.Clone(m.system),
		Rollout: settled(m.network), Held: maps.Clone(m.held), Components: m.components(),
	}
	f.Classes = map[string]bool{"installed": true, "critical": !m.classGone}
	f.Rollout.Networks = map[multus.Network]bool{{Namespace: "kube-system", Name: "a"}: true, {Namespace: "kube-system", Name: "b"}: !m.networkGone}
	for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
		v := m.volumes[name]
		volume := rwx.Volume{Name: name, Shared: v.shared, Engine: v.engine, Attached: v.attachedTo != ""}
		if volume.Attached {
			volume.Nodes = []string{v.attachedTo}
		}
		f.Rollout.Volumes = append(f.Rollout.Volumes, volume)
	}
	return f
}

func (m *fleetModel) values() catalog.Values { return catalog.Resolve(m.own, m.system) }

func (m *fleetModel) components() []catalog.Component {
	var components []catalog.Component
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		c := m.pods[name].Component
		if c.Kind == catalog.ShareManager && c.Missing {
			continue // Fairlead does not see it
		}
		c.Uses, c.Built = m.uses(c), maps.Clone(c.Built)
		if c.Missing {
			c.Built = nil
		}
		components = append(components, c)
	}
	for _, name := range slices.Sorted(maps.Keys(m.templates)) {
		components = append(components, m.component(m.templates[name]))
	}
	return components
}

// component returns a template with its status.
func (m *fleetModel) component(x *fleetTemplate) catalog.Component {
	c := x.Component
	c.Built, c.Total, c.Stopped = maps.Clone(c.Built), 2, true
	if c.Kind == catalog.DaemonSetComponent {
		c.Total = m.takers(c, c.Built)
	}
	ready := 0
	for name, p := range x.pods {
		wanted := c.Kind == catalog.Deployment || m.takes(c, c.Built, m.nodes[name])
		c.Stopped = c.Stopped && wanted && !p.ready
		if wanted && p.revision == x.revision {
			c.Updated++
			if p.ready {
				ready++
			}
		}
	}
	c.Ready = ready == c.Total
	return c
}

// mustComeBack: a pod that is deleted for a setting starts again if nothing else happens.
func (m *fleetModel) mustComeBack(t *rapid.T, w Work, c catalog.Component) {
	switch built := m.installed(c); {
	case !m.isMade(c):
		t.Fatalf("invariant 4: %s: it is not recreated: %+v", textOfWork(w), m.nodes[c.Node])
	case m.isRefused(built):
		t.Fatalf("invariant 4: %s: its class does not exist: %v", textOfWork(w), built)
	case !m.fits(c, built):
		t.Fatalf("invariant 4: %s: %+v does not accept it: %v", textOfWork(w), m.nodes[c.Node], built)
	case !m.starts(built) && built[catalog.Tolerations] != nowhere:
		t.Fatalf("invariant 4: %s: its network does not exist: %v", textOfWork(w), built)
	}
}

// mustRoll: an update is authorised, and pods of the template start on some node.
func (m *fleetModel) mustRoll(t *rapid.T, w Work, c catalog.Component) {
	m.mustBeAuthorised(t, w, c)
	built := maps.Clone(c.Built)
	for trait, want := range w.Wants {
		built[trait] = want.Text
	}
	_, selects := w.Wants[catalog.NodeSelector]
	_, tolerates := w.Wants[catalog.Tolerations]
	switch {
	case m.isRefused(built):
		t.Fatalf("invariant 4: %s: its class does not exist", textOfWork(w))
	case (selects || tolerates) && m.takers(c, built) == 0:
		t.Fatalf("invariant 4: %s: no node accepts its pods: %v", textOfWork(w), built)
	}
}
