package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// The world of the random model: what runs, what it is built with, and what it
// cannot come back without.

type fleetVolume struct {
	engine     string
	shared     bool
	attachedTo string // "" is detached
	replicas   []string
}

type fleetPod struct {
	catalog.Component
	leaves bool // for good, once it has terminated
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

type fleetModel struct {
	now         time.Time
	own, system map[catalog.Name]string
	told        map[catalog.Name]Told // durable
	written     map[catalog.Name]int  // version of Fairlead's own setting
	nodes       catalog.Nodes
	volumes     map[string]*fleetVolume
	pods        map[string]*fleetPod
	templates   map[string]*fleetTemplate
	network     storage.Attachment // of shared volumes
	classGone   bool               // one of those that values name
	networkGone bool               // likewise
	copying     bool               // the backing image manager is
	held        map[string]Hold    // in memory
	views       []view
	counter     int

	asked map[catalog.Trait][]demand // at the last look
	seen  []catalog.Component

	changes   int                   // of values and nodes
	restarted map[string]int        // by pod: changes when it was last restarted
	touched   map[catalog.Name]bool // components were changed to another value than the default
}

const (
	// zone is the node selector that nodes match, but for those whose label is gone.
	zone = "zone:a"
	// nowhere is a value that is valid, and no pod starts with.
	nowhere = "k:NoExecute"
	// tolerant and evictable tolerate the taints of the model.
	tolerant, evictable = "a=b:NoSchedule", "x:NoExecute"
)

// byHand are resources that somebody gave csi-attacher.
const byHand = `{"csi-attacher":{"requests":{"cpu":"5m"}}}`

func newFleet(v2 bool) *fleetModel {
	m := &fleetModel{
		now: midday, own: map[catalog.Name]string{}, system: map[catalog.Name]string{catalog.V2DataEngine: strconv.FormatBool(v2)},
		told: map[catalog.Name]Told{}, written: map[catalog.Name]int{}, held: map[string]Hold{}, restarted: map[string]int{}, touched: map[catalog.Name]bool{},
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

// set sets a value where its home is.
func (m *fleetModel) set(name catalog.Name, value string) {
	m.system[name] = value
	m.changes++
}

func (m *fleetModel) setOwn(name catalog.Name, value string) {
	m.own[name] = value
	m.written[name]++
	m.changes++
}

// isMisplaced: Fairlead's group has a value that belongs elsewhere, or that nothing goes by.
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

// nodeAtRest is a node that nothing was done to.
func nodeAtRest(n *catalog.Node) {
	n.Ready, n.Cordoned, n.StorageDown, n.Taints = true, false, false, nil
	n.Labels, n.AllocatableHugepagesMiB, n.AllocatableMilliCPU = map[string]string{"zone": "a"}, 8192, 4000
}

var mischiefs = []string{"kubelet", "cordon", "storage system", "label", "huge pages", "CPU", "CPU of its own", "NoSchedule", "NoExecute"}

var taints = map[string]corev1.Taint{
	"kubelet":    {Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
	"NoSchedule": {Key: "a", Value: "b", Effect: corev1.TaintEffectNoSchedule},
	"NoExecute":  {Key: "x", Effect: corev1.TaintEffectNoExecute},
}

// mischief on one node.
func mischief(do string) func(*catalog.Node) {
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

// runEngines is the storage system: an instance manager of each engine that is
// on, on every node that is up.
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

// byItself is what the storage system builds where its version has no setting for it.
var byItself = map[catalog.Trait]string{catalog.LivenessTimeout: "4", catalog.LogPathTrait: "/var/log", catalog.CPUMask: "0x2", catalog.MemorySize: "3072", catalog.PriorityClassName: "installed"}

// installed is what the storage system builds: it knows its own settings only. Of
// two names of a trait, the first of the catalog that it has decides.
func (m *fleetModel) installed(c catalog.Component) map[catalog.Trait]string {
	built := builtBy(catalog.Resolve(nil, nil, "longhorn"), c, m.nodes)
	for trait, text := range byItself {
		if _, exists := built[trait]; exists {
			built[trait] = text
		}
	}
	if c.Name == "csi-attacher" {
		built[catalog.Resources] = byHand
	}
	c.Built = built // the CPU that it asks for follows from its number of cores
	for _, d := range slices.Backward(catalog.All()) {
		text, has := m.system[d.Name]
		if !has || d.Wants == nil || d.Trait == catalog.DataEngine {
			continue
		}
		normal, err := d.Normalize(text)
		if err != nil {
			normal, _ = d.Normalize(d.Default)
		}
		if want, concerns := d.Wants(normal, c, m.nodes); concerns {
			built[d.Trait] = want
		}
		if d.Name == catalog.PriorityClass && err != nil {
			built[d.Trait] = text
		}
	}
	return built
}

// make is the storage system creating a pod.
func (m *fleetModel) make(p *fleetPod) {
	built := m.installed(p.Component)
	if !m.isMade(p.Component) || m.isRefused(built) {
		return
	}
	p.UID, p.Version, p.Built = m.next(), m.next(), built
	p.Missing, p.Terminating, p.Ready, p.Stopped = false, false, false, true
}

// lose is a pod going, whatever the reason.
func (m *fleetModel) lose(p *fleetPod) {
	p.Terminating, p.Missing, p.Ready, p.Stopped, p.UID = false, true, false, false, ""
	if p.leaves || p.Kind == catalog.ShareManager && len(m.uses(p.Component)) == 0 {
		delete(m.pods, p.Name)
	}
}

// come is a pod getting on: terminated, created again, started, Ready.
func (m *fleetModel) come(name string) {
	p := m.pods[name]
	switch {
	case p == nil || !m.nodes[p.Node].Ready:
	case p.Terminating && p.Ready:
		p.Ready, p.Version = false, m.next()
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
		p.Ready, p.Version = true, m.next()
	}
}

// roll is a template's own controller getting on by one pod.
func (m *fleetModel) roll(x *fleetTemplate) {
	starts := m.starts(x.Built)
	if x.Kind == catalog.Deployment { // the new pod comes first
		for _, number := range []string{"0", "1"} {
			p := x.pods[number]
			if (p == nil || !p.ready || p.revision != x.revision) && starts && !m.isRefused(x.Built) && m.isTakenBySome(x.Component, x.Built) {
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

// rollNetwork is the roll-out of the network of shared volumes, in one step.
func (m *fleetModel) rollNetwork() {
	desired, err := catalog.SharedVolumeNetwork(m.values(), storage.Longhorn())
	if err == nil && len(catalog.SharedVolumeGate(m.facts().Volumes)) == 0 {
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

// attachedOf counts the attached volumes of an engine, of any if it is "".
func (m *fleetModel) attachedOf(engine string) int {
	n := 0
	for _, v := range m.volumes {
		if v.attachedTo != "" && (engine == "" || v.engine == engine) {
			n++
		}
	}
	return n
}

// attach places a volume: its instance managers are there, but need not run yet.
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

// existing are the class and the network of the model that come and go, and those that stay.
func (m *fleetModel) existing() Existing {
	networks := []storage.Network{{Namespace: "kube-system", Name: "a"}}
	if !m.networkGone {
		networks = append(networks, storage.Network{Namespace: "kube-system", Name: "b"})
	}
	return Existing{
		Classes:  map[string]bool{"installed": true, "critical": !m.classGone},
		Networks: rollout.NetworksThere(networks),
	}
}

// isRefused: the API server creates no pod of a class that does not exist.
func (m *fleetModel) isRefused(built map[catalog.Trait]string) bool {
	class := built[catalog.PriorityClassName]
	return class != "" && class != "installed" && (class != "critical" || m.classGone)
}

// starts: the containers of a pod run once its node has taken it; Multus knows its network.
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

// stays: a pod that runs on the node is not removed from it.
func (m *fleetModel) stays(built map[catalog.Trait]string, n catalog.Node, ofDaemonSet bool) bool {
	return (!ofDaemonSet || labelled(built[catalog.NodeSelector], n)) && !slices.ContainsFunc(n.Taints, func(taint corev1.Taint) bool {
		return taint.Effect == corev1.TaintEffectNoExecute && !tolerated(built, taint, ofDaemonSet)
	})
}

// takes: the node takes a new pod of a template.
func (m *fleetModel) takes(c catalog.Component, built map[catalog.Trait]string, n catalog.Node) bool {
	ofDaemonSet := c.Kind == catalog.DaemonSetComponent
	return labelled(built[catalog.NodeSelector], n) && (ofDaemonSet || !n.Cordoned) &&
		!slices.ContainsFunc(n.Taints, func(taint corev1.Taint) bool { return !tolerated(built, taint, ofDaemonSet) })
}

func (m *fleetModel) isTakenBySome(c catalog.Component, built map[catalog.Trait]string) bool {
	return slices.ContainsFunc(slices.Sorted(maps.Keys(m.nodes)), func(name string) bool { return m.takes(c, built, m.nodes[name]) })
}

// fits: the kubelet takes the pod.
func (m *fleetModel) fits(c catalog.Component, built map[catalog.Trait]string) bool {
	if c.Kind == catalog.ShareManager {
		return true // it is on whichever node it fits
	}
	node := m.nodes[c.Node]
	milliCPU, _ := strconv.Atoi(strings.TrimSuffix(built[catalog.CPURequest], "m"))
	memory, _ := strconv.Atoi(built[catalog.MemorySize])
	return labelled(built[catalog.NodeSelector], node) && m.stays(built, node, false) &&
		int64(milliCPU) <= node.AllocatableMilliCPU && (c.Engine != catalog.EngineV2 || int64(memory) <= node.AllocatableHugepagesMiB)
}

// isMade: the storage system creates the pod that is missing.
func (m *fleetModel) isMade(c catalog.Component) bool {
	node := m.nodes[c.Node]
	return node.Ready && !node.StorageDown && !(c.Kind == catalog.InstanceManager && node.Cordoned)
}

// isUp: the pod is waited for.
func (m *fleetModel) isUp(c catalog.Component) bool {
	node := m.nodes[c.Node]
	return !isPod(c) || node.Ready && !node.StorageDown && !(c.Missing && (!m.isMade(c) || !m.fits(c, m.installed(c))))
}

// isBack: the component runs, and a DaemonSet does somewhere.
func isBack(c catalog.Component) bool {
	return c.Ready && !c.Terminating && !c.Missing && (c.Kind != catalog.DaemonSetComponent || c.Total > 0)
}

// isLeftOut: the selector in force keeps a pod that is bound to its node from coming back there.
func (m *fleetModel) isLeftOut(c catalog.Component) bool {
	if c.Kind != catalog.InstanceManager && c.Kind != catalog.BackingImageManager {
		return false
	}
	selector := c.Built[catalog.NodeSelector]
	if text, has := m.system[catalog.SystemManagedNodeSelector]; has && text != "zone" {
		selector = text
	}
	return !labelled(selector, m.nodes[c.Node])
}

// facts are the cluster as it is.
func (m *fleetModel) facts() Facts {
	f := Facts{
		Profile: storage.Longhorn(), Values: m.values(), Told: maps.Clone(m.told), Now: m.now, Nodes: maps.Clone(m.nodes),
		OwnValues: maps.Clone(m.own), SystemValues: maps.Clone(m.system), Existing: m.existing(),
		Rollout: settled(m.network), Held: maps.Clone(m.held), Components: m.components(),
	}
	for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
		v := m.volumes[name]
		volume := storage.Volume{Name: name, Shared: v.shared, Engine: v.engine, Attached: v.attachedTo != ""}
		if volume.Attached {
			volume.Nodes = []string{v.attachedTo}
		}
		f.Volumes = append(f.Volumes, volume)
	}
	f.Rollout.Volumes = f.Volumes
	return f
}

func (m *fleetModel) values() catalog.Values { return catalog.Resolve(m.own, m.system, "longhorn") }

func (m *fleetModel) components() []catalog.Component {
	var components []catalog.Component
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		c := m.pods[name].Component
		if c.Kind == catalog.ShareManager && c.Missing {
			continue // nothing tells of it
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

// component is a template as its status tells.
func (m *fleetModel) component(x *fleetTemplate) catalog.Component {
	c := x.Component
	c.Built, c.Total, c.Stopped = maps.Clone(c.Built), 2, true
	if c.Kind == catalog.DaemonSetComponent {
		c.Total = len(slices.DeleteFunc(slices.Sorted(maps.Keys(m.nodes)), func(name string) bool { return !m.takes(c, c.Built, m.nodes[name]) }))
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

// mustComeBack: a pod that is deleted for a setting comes back if nothing else happens.
func (m *fleetModel) mustComeBack(t *rapid.T, w Work, c catalog.Component) {
	switch built := m.installed(c); {
	case !m.isMade(c):
		t.Fatalf("invariant 4: %s: nothing creates it again: %+v", textOfWork(w), m.nodes[c.Node])
	case m.isRefused(built):
		t.Fatalf("invariant 4: %s: its class is gone: %v", textOfWork(w), built)
	case !m.fits(c, built):
		t.Fatalf("invariant 4: %s: %+v does not take it: %v", textOfWork(w), m.nodes[c.Node], built)
	case !m.starts(built) && built[catalog.Tolerations] != nowhere:
		t.Fatalf("invariant 4: %s: its network is gone: %v", textOfWork(w), built)
	}
}

// mustRoll: pods of a template start somewhere.
func (m *fleetModel) mustRoll(t *rapid.T, w Work, c catalog.Component) {
	built := maps.Clone(c.Built)
	for trait, want := range w.Wants {
		built[trait] = want.Text
	}
	_, selects := w.Wants[catalog.NodeSelector]
	_, tolerates := w.Wants[catalog.Tolerations]
	switch {
	case m.isRefused(built):
		t.Fatalf("invariant 4: %s: its class is gone", textOfWork(w))
	case (selects || tolerates) && !m.isTakenBySome(c, built):
		t.Fatalf("invariant 4: %s: no node takes its pods: %v", textOfWork(w), built)
	}
}
