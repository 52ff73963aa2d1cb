package settings

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/storage"
)

// The fleet below is a small cluster whose every part may act at any moment:
// users set, change and take back values, volumes attach and detach, pods crash
// and come back late, not Ready, or built by a controller that knows no better,
// nodes go down, Fairlead's controller decides first on stale views, crashes
// between any two writes and forgets all that is not written down. The
// invariants of the design are checked at every step:
//
//	4  a setting change never restarts a pod that serves an attached volume
//	5  one setting's gate never authorises another's restarts
//	6  applied only after the roll-out is complete
//	7  any crash at any step resumes, to the end, and nothing is restarted twice
//
// Gates are computed here anew, from the table of when a setting may be applied.

// planValues are what users set: two or three valid values, and one that is not.
var planValues = map[Name][]string{
	TaintToleration:             {"", "a=b:NoSchedule", nowhere, "a=b=c:NoSchedule"},
	SystemManagedNodeSelector:   {"", zone, "zone:b", "zone"},
	PriorityClass:               {"", "critical", "installed", "not a name"},
	StorageNetwork:              {"", "kube-system/a", "kube-system/b", "kube-system/"},
	StorageNetworkForRWX:        {"true", "false"},
	EndpointNetworkForRWX:       {"", "kube-system/b"},
	GuaranteedCPU:               {"12", "20", `{"v1":"5","v2":"30"}`, "lots"},
	V2GuaranteedCPU:             {"1250", "2000", "1"},
	V1DataEngine:                {"true", "false", "maybe"},
	V2DataEngine:                {"true", "false"},
	DataEngineCPUMask:           {`{"v2":"0x3"}`, `{"v2":"0xf"}`, "{}"},
	V2CPUMask:                   {"0x1", "0x7"},
	DataEngineMemorySize:        {`{"v2":"2048"}`, `{"v2":"4096"}`, "3"},
	InstanceManagerProbeTimeout: {"10", "20"},
	EngineImageProbePeriod:      {"5", "10"},
	CSIResources:                {"", `{"csi-attacher":{"requests":{"cpu":"10m"}}}`},
	LogPath:                     {"/var/lib/longhorn/logs/", "/var/log/longhorn"},
	ReplicaRebuildLimit:         {"5", "1"},
}

// mayApply is the table of gates: who may be brought the value of the setting now.
func (m *fleetModel) mayApply(name Name, c Component) bool {
	switch name {
	case TaintToleration, SystemManagedNodeSelector, PriorityClass, StorageNetwork:
		if c.Kind == InstanceManager {
			return len(m.uses(c)) == 0
		}
		return m.attachedOf("") == 0 && len(m.uses(c)) == 0
	case GuaranteedCPU, V2GuaranteedCPU, InstanceManagerProbeTimeout, DataEngineCPUMask, V2CPUMask, DataEngineMemorySize, LogPath:
		return c.Kind == InstanceManager && len(m.uses(c)) == 0
	case V1DataEngine:
		return c.Engine == EngineV1 && m.attachedOf(EngineV1) == 0 && len(m.uses(c)) == 0
	case V2DataEngine:
		return c.Engine == EngineV2 && m.attachedOf(EngineV2) == 0 && len(m.uses(c)) == 0
	case EngineImageProbePeriod, CSIResources:
		return !isPod(c)
	}
	return false
}

type fleetVolume struct {
	engine     string
	shared     bool
	attachedTo string // "" is detached
	replicas   []string
}

type fleetPod struct {
	Component
	leaves bool // for good, once it has terminated
}

type fleetTemplate struct {
	Component
	revision int
	pods     []int // revision of each
}

type fleetModel struct {
	now         time.Time
	own, system map[Name]string
	applied     map[Name]string // durable
	told        map[Name]string // value that was last reported about
	takenBack   map[Name]string // own value, normalized
	nodes       Nodes
	volumes     map[string]*fleetVolume
	pods        map[string]*fleetPod
	templates   map[string]*fleetTemplate
	network     storage.Attachment // of shared volumes
	mutator     bool
	classGone   bool                 // one of those that values name
	networkGone bool                 // likewise
	copying     bool                 // the backing image manager is
	tried       map[string]time.Time // in memory: when a component was brought in line
	asked       map[Trait][]demand   // at the last look
	seen        []Component
	views       []Facts
	uids        int

	changes  int // of values and nodes
	builds   map[string]int
	restarts map[string]int
}

func newFleet(v2 bool) *fleetModel {
	m := &fleetModel{
		now: noon, own: map[Name]string{}, system: map[Name]string{V2DataEngine: fmt.Sprint(v2)}, applied: map[Name]string{}, told: map[Name]string{}, takenBack: map[Name]string{},
		nodes: Nodes{}, pods: map[string]*fleetPod{}, templates: map[string]*fleetTemplate{}, mutator: true,
		tried: map[string]time.Time{}, builds: map[string]int{}, restarts: map[string]int{},
		volumes: map[string]*fleetVolume{
			"pvc-0": {engine: EngineV1, replicas: []string{"node-2"}},
			"pvc-1": {engine: EngineV1, replicas: []string{"node-1", "node-3"}, shared: true},
			"pvc-2": {engine: EngineV2, replicas: []string{"node-3"}},
		},
	}
	for i := 1; i <= 3; i++ {
		n := Node{Storage: true, AllocatableMilliCPU: int64(2000 * i)}
		nodeAtRest(&n)
		m.nodes[fmt.Sprintf("node-%d", i)] = n
	}
	m.runEngines()
	m.addPod(Component{Kind: BackingImageManager, Name: "bim", Node: "node-1"})
	for _, c := range []Component{
		{Kind: Deployment, Name: "csi-attacher", Total: 2}, {Kind: Deployment, Name: "csi-provisioner", Total: 2},
		{Kind: DaemonSetComponent, Name: "longhorn-csi-plugin", Total: 3, Client: true}, {Kind: DaemonSetComponent, Name: "engine-image-ei-1", Total: 3},
	} {
		m.templates[c.Name] = &fleetTemplate{Component: c, pods: make([]int, c.Total)}
		m.templates[c.Name].Built = m.installed(c)
	}
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		m.pods[name].Ready = true
	}
	return m
}

// runEngines is the storage system: an instance manager of each engine that is
// on, on every node that is up.
func (m *fleetModel) runEngines() {
	values := Resolve(nil, m.system, "longhorn") // it reads no other
	for node, name := range map[string]Name{EngineV1: V1DataEngine, EngineV2: V2DataEngine} {
		engine := node
		if on, err := boolValue(values[name].Text); err != nil || !on {
			continue
		}
		for _, n := range m.nodes.names() {
			im := engine + "-" + n
			if m.pods[im] == nil && m.nodes[n].Ready && !m.nodes[n].StorageDown && (engine == EngineV1 || !m.nodes[n].DisabledV2) {
				m.addPod(Component{Kind: InstanceManager, Name: im, Node: n, Engine: engine})
			}
		}
	}
}

func (m *fleetModel) addPod(c Component) {
	c.Missing = true
	m.pods[c.Name] = &fleetPod{Component: c}
	if m.isMade(c) {
		m.make(m.pods[c.Name])
	}
}

func (m *fleetModel) values() Values { return Resolve(m.own, m.system, "longhorn") }

// byItself is what the storage system builds where its version has no setting for
// it: not what the catalog has as the default of those that do.
var byItself = map[Trait]string{LivenessTimeout: "4", LogPathTrait: "/var/log", CPUMask: "0x2", MemorySize: "3072"}

// installed is what the storage system builds by itself; it knows its own
// settings only, and was installed with a priority class.
func (m *fleetModel) installed(c Component) map[Trait]string {
	values := Resolve(nil, m.system, "longhorn")
	built := builtBy(values, c, m.nodes)
	for trait, text := range byItself {
		if _, exists := built[trait]; exists {
			built[trait] = text
		}
	}
	for trait, want := range Wanted(values, m.system, nil, c, m.nodes) { // of two names of a trait it has one
		if _, exists := built[trait]; exists && trait != DataEngine {
			built[trait] = want.Text
		}
	}
	if _, set := m.system[PriorityClass]; !set {
		built[PriorityClassName] = "installed"
	}
	return built
}

// make is a pod being made anew, through Fairlead's webhook if that is up.
func (m *fleetModel) make(p *fleetPod) {
	if m.isRefused(p.Component, m.newly(p.Component, m.mutator)) {
		return
	}
	m.uids++
	p.UID, p.Missing, p.Terminating, p.Ready = fmt.Sprint(m.uids), false, false, false
	p.Built = m.newly(p.Component, m.mutator)
	if !m.mutator {
		m.builds[p.Name]++
	}
}

// heeds: a value of Fairlead's own group is built and read by somebody. What the
// storage system has itself, it has its own way.
func (m *fleetModel) heeds(name Name) bool {
	own, isOwn := m.own[name]
	theirs, has := m.system[name]
	d, _ := Lookup(string(name))
	if !isOwn || d.Gate == SharedVolumesDetached {
		return true
	}
	if has {
		normal, bad := d.Normalize(own)
		normalTheirs, alsoBad := d.Normalize(theirs)
		return own == theirs || bad == nil && alsoBad == nil && normal == normalTheirs
	}
	return m.joins(name)
}

// joins: Fairlead builds with the setting where the storage system has none of
// that name: of pods, the webhook builds the scheduling, the CPU and the storage
// network alone; of templates, all of it. Pods of v2 whose CPU is not as the
// storage system's newer setting of it says, that deletes.
func (m *fleetModel) joins(name Name) bool {
	switch name {
	case V2GuaranteedCPU:
		_, newer := m.system[GuaranteedCPU]
		return !newer
	case TaintToleration, SystemManagedNodeSelector, PriorityClass, StorageNetwork, GuaranteedCPU, EngineImageProbePeriod, CSIResources:
		return true
	}
	return false
}

func (m *fleetModel) uses(c Component) []string {
	var uses []string
	for _, name := range slices.Sorted(maps.Keys(m.volumes)) {
		v := m.volumes[name]
		switch {
		case v.attachedTo == "":
		case c.Kind == ShareManager && c.Name == "share-manager-"+name:
			uses = append(uses, name)
		case c.Kind == InstanceManager && c.Engine == v.engine && v.attachedTo == c.Node:
			uses = append(uses, name+"-e-0")
		case c.Kind == InstanceManager && c.Engine == v.engine && slices.Contains(v.replicas, c.Node):
			uses = append(uses, name+"-r-0")
		}
	}
	if c.Kind == BackingImageManager && m.copying {
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

func (m *fleetModel) attach(name, node string) {
	v := m.volumes[name]
	if v.attachedTo != "" {
		return
	}
	for _, n := range append([]string{node}, v.replicas...) {
		if p := m.pods[v.engine+"-"+n]; p == nil || !p.Ready || p.Terminating || p.Missing {
			return // no instance starts there
		}
	}
	v.attachedTo = node
	if share := "share-manager-" + name; v.shared && m.pods[share] == nil {
		m.addPod(Component{Kind: ShareManager, Name: share, Node: node})
	}
}

// facts are the cluster as it is.
func (m *fleetModel) facts() Facts {
	f := Facts{
		Profile: storage.Longhorn(), Values: m.values(), Applied: maps.Clone(m.applied), Now: m.now, Nodes: maps.Clone(m.nodes),
		OwnValues: maps.Clone(m.own), SystemValues: maps.Clone(m.system), Existing: m.existing(),
		Rollout: atRest(m.network), Held: map[string]Hold{},
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
	f.Components = m.components()
	for name, at := range m.tried {
		f.Held[name] = Hold{Until: at.Add(10 * time.Second), Message: name + " was just brought in line"}
	}
	return f
}

func (m *fleetModel) components() []Component {
	var components []Component
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		c := m.pods[name].Component
		c.Uses, c.Built = m.uses(c), maps.Clone(c.Built)
		if c.Missing {
			c.Built = nil
		}
		components = append(components, c)
	}
	for _, name := range slices.Sorted(maps.Keys(m.templates)) {
		t := m.templates[name]
		c := t.Component
		c.Built, c.Updated = maps.Clone(c.Built), 0
		for _, revision := range t.pods {
			if revision == t.revision {
				c.Updated++
			}
		}
		c.Ready = c.Updated == c.Total
		components = append(components, c)
	}
	return components
}

// demand is a setting that asks for a value, explicitly or not.
type demand struct {
	Definition
	normal string
}

// look takes down who asks for what, so that decides need not parse for each component.
func (m *fleetModel) look() {
	m.asked, m.seen = map[Trait][]demand{}, m.components()
	values := m.values()
	for rank := range 3 {
		for _, d := range All() {
			v := values[d.Name]
			if d.Wants == nil || m.rank(d, v) != rank {
				continue
			}
			if was, known := m.applied[d.Name]; v.Source == SourceDefault && (!known || was == d.Default || !m.joins(d.Name)) {
				continue
			}
			if normal, err := d.Normalize(v.Text); err == nil {
				m.asked[d.Trait] = append(m.asked[d.Trait], demand{d, normal})
			}
		}
	}
}

// rank: what is set and somebody knows goes first, then what nobody knows, then defaults.
func (m *fleetModel) rank(d Definition, v Value) int {
	_, has := m.system[d.Name]
	switch {
	case v.Source == SourceDefault:
		return 2
	case !has && !m.heeds(d.Name):
		return 1
	}
	return 0
}

// decides is the setting that decides a trait of a component, and how.
func (m *fleetModel) decides(c Component, trait Trait) (Name, string) {
	for _, a := range m.asked[trait] {
		if text, ok := a.Wants(a.normal, c, m.nodes); ok {
			return a.Name, text
		}
	}
	return "", ""
}

// act is Fairlead's controller: it decides on a view that may be stale, decides
// again on a live one, tells what is pending, and then does one piece of work.
// It may crash after each of its first writes.
func (m *fleetModel) act(t *rapid.T, stale Facts, crash int) {
	p := Make(stale)
	due := p.isDue()
	if due || m.newlyApplied(p) {
		p = Make(m.facts())
	}
	before := maps.Clone(m.applied)
	m.report(t, p)
	if w, still := p.Next(); due && still && crash != 1 {
		m.do(t, w, before)
		if crash != 2 {
			m.tried[w.Component.Name] = m.now
		}
	}
	if crash > 0 {
		m.tried = map[string]time.Time{}
	}
}

func (p Plan) isDue() bool {
	_, due := p.Next()
	return due
}

func (m *fleetModel) newlyApplied(p Plan) bool {
	return slices.ContainsFunc(p.Settings, func(s SettingPlan) bool { return s.Applied && m.applied[s.Name] != s.Value.Text })
}

func (m *fleetModel) report(t *rapid.T, p Plan) {
	m.look()
	values := m.values()
	for _, s := range p.Settings {
		if s.Value != values[s.Name] {
			continue // not the value that was judged
		}
		if s.Applied && m.applied[s.Name] != s.Value.Text {
			m.mustBeApplied(t, s)
		}
		m.told[s.Name] = s.Value.Text
		if m.applied[s.Name] = Underway; s.Applied {
			m.applied[s.Name] = s.Value.Text
		}
	}
}

func (m *fleetModel) do(t *rapid.T, w Work, before map[Name]string) {
	if len(w.Settings) == 0 {
		t.Fatalf("invariant 5: %s for no setting", textOfWork(w))
	}
	if w.Action == UpdateComponent {
		template := m.templates[w.Component.Name]
		m.mustBeAuthorised(t, w, template.Component)
		m.mustRoll(t, w, template.Component)
		for trait, want := range w.Wants {
			template.Built[trait] = want.Text
		}
		template.revision++
		return
	}
	pod := m.pods[w.Component.Name]
	if pod == nil || pod.UID != w.Component.UID {
		t.Fatalf("%s: of another incarnation", textOfWork(w))
	}
	if pod.Missing || pod.Terminating {
		t.Fatalf("invariant 7: %s: deleted twice", textOfWork(w))
	}
	if uses := m.uses(pod.Component); len(uses) > 0 {
		t.Fatalf("invariant 4: %s: it runs %v", textOfWork(w), uses)
	}
	m.mustBeAuthorised(t, w, pod.Component)
	m.mustComeBack(t, w, pod.Component)
	if pod.Ready {
		m.mustBeAlone(t, w, before)
	}
	pod.Terminating, pod.leaves = true, w.Action == RemoveComponent
	m.restarts[pod.Name]++
	if most := 1 + m.changes + m.builds[pod.Name]; m.restarts[pod.Name] > most {
		t.Fatalf("invariant 7: %s restarted more than %d times", pod.Name, most)
	}
}

// mustBeAuthorised: each setting that work is done for asks for it, and its own gate is open.
func (m *fleetModel) mustBeAuthorised(t *rapid.T, w Work, c Component) {
	if c.OptOut {
		t.Fatalf("%s: it opts out", textOfWork(w))
	}
	if at, tried := m.tried[c.Name]; tried && m.now.Before(at.Add(10*time.Second)) {
		t.Fatalf("%s: it is held", textOfWork(w))
	}
	if len(w.Settings) != len(w.Wants) {
		t.Fatalf("invariant 5: %s, but wants %v", textOfWork(w), w.Wants)
	}
	for trait, want := range w.Wants {
		name, text := m.decides(c, trait)
		if name != want.Setting || text != want.Text || c.Built[trait] == text || !slices.Contains(w.Settings, name) {
			t.Fatalf("invariant 5: %s: wants %v, built %q, %s decides %q", textOfWork(w), want, c.Built[trait], name, text)
		}
		if !m.heeds(name) {
			t.Fatalf("invariant 7: %s, and comes back as it was, again and again: nobody heeds %s", textOfWork(w), name)
		}
		if !m.mayApply(name, c) {
			t.Fatalf("invariant 5: %s: the gate of %s is closed", textOfWork(w), name)
		}
	}
	if removes := w.Wants[DataEngine].Text == "false"; removes != (w.Action == RemoveComponent) {
		t.Fatalf("%s: wants %v", textOfWork(w), w.Wants)
	}
}

// mustBeAlone: no pod is taken down while another that the same settings are
// being rolled out to has yet to come back.
func (m *fleetModel) mustBeAlone(t *rapid.T, w Work, before map[Name]string) {
	for _, p := range m.pods {
		if p.Name == w.Component.Name || p.Kind == ShareManager || isBack(p.Component) || !m.isUp(p.Component) {
			continue
		}
		for trait, want := range w.Wants {
			d, _ := Lookup(string(want.Setting))
			value, _ := d.Normalize(m.values()[d.Name].Text)
			if was, err := d.Normalize(before[d.Name]); err == nil && was == value {
				continue // it was not being rolled out
			}
			if name, _ := m.decides(p.Component, trait); name == want.Setting && want.Text != "false" && !m.leaving(p) {
				t.Fatalf("%s while %s is not back", textOfWork(w), p.Name)
			}
		}
	}
}

// leaving: it is missing, and none will be made.
func (m *fleetModel) leaving(p *fleetPod) bool { return p.leaves && p.Missing }

// mustBeApplied holds what is said to be applied against the cluster.
func (m *fleetModel) mustBeApplied(t *rapid.T, s SettingPlan) {
	d, _ := Lookup(string(s.Name))
	if m.choosesRWX(s.Name) {
		if desired, err := SharedVolumeNetwork(m.values(), storage.Longhorn()); err != nil || desired != m.network {
			t.Fatalf("invariant 6: %s applied, RWX volumes are on %q (%v)", s.Name, m.network, err)
		}
	}
	if d.Wants == nil {
		if !m.heeds(s.Name) {
			t.Fatalf("invariant 6: %s applied, and nobody reads it", s.Name)
		}
		return
	}
	normal, err := d.Normalize(s.Value.Text)
	if err != nil {
		t.Fatalf("invariant 6: %s applied, and invalid: %v", s.Name, err)
	}
	rolling := !d.same(m.applied, normal)
	if d.Trait == DataEngine && normal == "true" && rolling && s.Value.Source != SourceDefault {
		engine := map[Name]string{V1DataEngine: EngineV1, V2DataEngine: EngineV2}[s.Name]
		for name, n := range m.nodes {
			if n.Ready && !n.StorageDown && !n.Cordoned && m.pods[engine+"-"+name] == nil && (engine == EngineV1 || !n.DisabledV2) {
				t.Fatalf("invariant 6: %s applied, %s has no instance manager of it", s.Name, name)
			}
		}
	}
	for _, c := range m.seen {
		up := m.isUp(c)
		name, text := m.decides(c, d.Trait)
		built, exists := c.Built[d.Trait]
		switch {
		case !exists && !c.Missing || d.Trait == DataEngine && text == "false" && c.Missing:
		case name == "" && s.Value.Source == SourceDefault && up && !c.Missing && d.Trait != CPURequest && !m.awaitsCorrection(d.Trait):
			was, concerns := d.Wants(m.takenBack[s.Name], c, m.nodes)
			byDefault, _ := d.Wants(d.Default, c, m.nodes)
			if concerns && built == was && built != byDefault && built != m.installed(c)[d.Trait] {
				t.Fatalf("invariant 6: %s is taken back, but %s is built with %q", s.Name, c.Name, built)
			}
		case name != s.Name:
		case c.Missing:
			if rolling && up {
				t.Fatalf("invariant 6: %s applied, %s is missing", s.Name, c.Name)
			}
		case built != text:
			t.Fatalf("invariant 6: %s applied, %s is built with %q", s.Name, c.Name, built)
		case rolling && up && !isBack(c):
			t.Fatalf("invariant 6: %s applied, %s is not back", s.Name, c.Name)
		}
	}
}

// awaitsCorrection: a value of another name of the trait is invalid, and once
// corrected it decides.
func (m *fleetModel) awaitsCorrection(trait Trait) bool {
	values := m.values()
	return slices.ContainsFunc(All(), func(d Definition) bool { return d.Trait == trait && d.Parse(values[d.Name].Text) != nil })
}

func isBack(c Component) bool { return c.Ready && !c.Terminating && !c.Missing }

// choosesRWX: the newer setting decides where it is set, and the older where it is not.
func (m *fleetModel) choosesRWX(name Name) bool {
	endpoint := strings.TrimSpace(m.values()[EndpointNetworkForRWX].Text) != ""
	return name == StorageNetworkForRWX && !endpoint || name == EndpointNetworkForRWX && endpoint
}

// check holds what a plan on the cluster as it is says against it.
func (m *fleetModel) check(t *rapid.T) {
	m.look()
	for _, s := range Make(m.facts()).Settings {
		if s.Applied {
			m.mustBeApplied(t, s)
		} else if s.Message == "" || s.Phase == "" || s.Phase == PhaseApplied || s.Phase == PhaseWaiting && len(s.Blockers) == 0 {
			t.Fatalf("%s is not applied, and it is not said why: %+v", s.Name, s)
		}
	}
}

// come is a pod getting on: terminated, made anew, Ready.
func (m *fleetModel) come(name string) {
	p := m.pods[name]
	switch {
	case p == nil || !m.nodes[p.Node].Ready:
	case p.Terminating && (p.leaves || p.Kind == ShareManager && len(m.uses(p.Component)) == 0):
		delete(m.pods, name)
	case p.Terminating:
		p.Terminating, p.Ready, p.Missing, p.UID = false, false, true, ""
	case p.Missing:
		if m.isMade(p.Component) {
			m.make(p)
		}
	case !p.Ready && !m.fits(p.Component, p.Built): // the kubelet ends it
		p.Missing, p.UID = true, ""
	default:
		p.Ready = p.Ready || p.Built[Tolerations] != nowhere && m.connects(p.Built)
	}
}

// nowhere is a value that is valid, and no pod starts with.
const nowhere = "k:NoExecute"

// roll is a template's own controller getting on by one pod.
func (m *fleetModel) roll(name string) {
	t := m.templates[name]
	if i := slices.IndexFunc(t.pods, func(revision int) bool { return revision != t.revision }); i >= 0 && t.Built[Tolerations] != nowhere && !(m.classGone && t.Built[PriorityClassName] == "critical") {
		t.pods[i] = t.revision
	}
}

// rollNetwork is the roll-out of the network of shared volumes, in one step.
func (m *fleetModel) rollNetwork() {
	desired, err := SharedVolumeNetwork(m.values(), storage.Longhorn())
	if err == nil && len(SharedVolumeGate(m.facts().Volumes)) == 0 {
		m.network = desired
	}
}

func TestPlanInvariants(t *testing.T) {
	names := slices.Sorted(maps.Keys(planValues))
	fewer(t, 30) // a step is a whole plan, and more
	rapid.Check(t, func(t *rapid.T) {
		m := newFleet(rapid.Bool().Draw(t, "v2"))
		if rapid.Bool().Draw(t, "has the newer setting of CPU") {
			m.system[GuaranteedCPU] = "12"
		}
		if rapid.IntRange(0, 3).Draw(t, "without v2 on node-3") == 3 {
			m.changeNode("node-3", func(n *Node) { n.DisabledV2 = true })
		}
		pod := func() *fleetPod {
			return m.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(m.pods))).Draw(t, "pod")]
		}
		template := func() *fleetTemplate {
			return m.templates[rapid.SampledFrom(slices.Sorted(maps.Keys(m.templates))).Draw(t, "template")]
		}
		volume := func() string { return rapid.SampledFrom(slices.Sorted(maps.Keys(m.volumes))).Draw(t, "volume") }
		node := func() string { return rapid.SampledFrom(m.nodes.names()).Draw(t, "node") }
		set := func(where map[Name]string) {
			name := rapid.SampledFrom(names).Draw(t, "setting")
			where[name] = rapid.SampledFrom(planValues[name]).Draw(t, "value")
			m.changes++
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				m.check(t)
				if m.views = append(m.views, m.facts()); len(m.views) > 6 {
					m.views = m.views[1:]
				}
			},
			"set":                       func(*rapid.T) { set(m.own) },
			"set the system's":          func(*rapid.T) { set(m.system) },
			"attach":                    func(*rapid.T) { m.attach(volume(), node()) },
			"detach":                    func(*rapid.T) { m.volumes[volume()].attachedTo = "" },
			"copy":                      func(*rapid.T) { m.copying = !m.copying },
			"kubernetes":                func(*rapid.T) { m.come(pod().Name) },
			"template's own controller": func(*rapid.T) { m.roll(template().Name) },
			"network of RWX volumes":    func(*rapid.T) { m.rollNetwork() },
			"storage system":            func(*rapid.T) { m.runEngines() },
			"webhook":                   func(*rapid.T) { m.mutator = !m.mutator },
			"take back": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "setting")
				if value, set := m.own[name]; set && m.told[name] == value {
					d, _ := Lookup(string(name))
					m.takenBack[name], _ = d.Normalize(value)
					delete(m.own, name)
					m.changes++
				}
			},
			"pod crashes": func(t *rapid.T) {
				p := pod()
				p.Terminating, p.Missing, p.Ready, p.UID = false, true, false, ""
				if p.leaves || p.Kind == ShareManager && len(m.uses(p.Component)) == 0 {
					delete(m.pods, p.Name)
				}
			},
			"pod is not Ready for a while": func(t *rapid.T) { pod().Ready = false },
			"opt out":                      func(t *rapid.T) { p := pod(); p.OptOut = !p.OptOut },
			"template is written anew": func(t *rapid.T) {
				x := template()
				x.Built, x.revision = m.installed(x.Component), x.revision+1
			},
			"node": func(t *rapid.T) {
				do := []string{"kubelet", "cordon", "storage system", "label", "huge pages"}
				m.changeNode(node(), mischief(rapid.SampledFrom(do).Draw(t, "what of it")))
			},
			"class comes or goes":   func(*rapid.T) { m.classGone = !m.classGone },
			"network comes or goes": func(*rapid.T) { m.networkGone = !m.networkGone },
			// Chance alone seldom names the one that is gone.
			"a class is named that may be gone": func(t *rapid.T) {
				where := rapid.SampledFrom([]map[Name]string{m.own, m.system}).Draw(t, "where")
				where[PriorityClass] = "critical"
				m.classGone = rapid.Bool().Draw(t, "gone")
				m.changes++
			},
			"the storage system is upgraded, and has a setting no more": func(t *rapid.T) {
				name := rapid.SampledFrom([]Name{V2GuaranteedCPU, V2CPUMask}).Draw(t, "setting")
				m.own[name] = rapid.SampledFrom(planValues[name]).Draw(t, "value")
				delete(m.system, name)
				m.changes++
			},
			"CPU of a node": func(t *rapid.T) {
				m.changeNode(node(), func(n *Node) { n.InstanceManagerMilliCPU = 500 - n.InstanceManagerMilliCPU })
			},
			"pass time": func(t *rapid.T) { m.now = m.now.Add(4 * time.Second) },
			"fairlead":  func(t *rapid.T) { m.act(t, m.facts(), 0) },
			"fairlead on a stale cache": func(t *rapid.T) {
				if len(m.views) > 0 {
					m.act(t, m.views[rapid.IntRange(0, len(m.views)-1).Draw(t, "view")], 0)
				}
			},
			"fairlead crashes": func(t *rapid.T) { m.act(t, m.facts(), rapid.IntRange(1, 2).Draw(t, "after write")) },
			// Without this, chance alone seldom gets to the far end of a roll-out.
			"all goes well for a while": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "rounds") {
					m.goWell(t)
				}
			},
		})
		m.mustFinish(t)
	})
}

// fewer runs of what takes longer, for the rest of the test.
func fewer(t *testing.T, times int) {
	checks := flag.Lookup("rapid.checks").Value.String()
	n, err := strconv.Atoi(checks)
	if err != nil {
		t.Fatal(err)
	}
	set := func(value string) {
		if err := flag.Set("rapid.checks", value); err != nil {
			t.Fatal(err)
		}
	}
	set(strconv.Itoa(max(1, n/times)))
	t.Cleanup(func() { set(checks) })
}

func (m *fleetModel) changeNode(name string, change func(*Node)) {
	n := m.nodes[name]
	change(&n)
	m.nodes[name] = n
	m.changes++
}

// goWell is one round in which everybody does his part.
func (m *fleetModel) goWell(t *rapid.T) {
	m.now = m.now.Add(4 * time.Second)
	m.act(t, m.facts(), 0)
	for _, name := range slices.Sorted(maps.Keys(m.pods)) {
		m.come(name)
	}
	for name := range m.templates {
		m.roll(name)
	}
	m.runEngines()
	m.rollNetwork()
	m.check(t)
}

// mustFinish stops the world's mischief and wants everything applied: nothing
// that happened before may have left it stuck.
func (m *fleetModel) mustFinish(t *rapid.T) {
	m.mutator, m.copying = true, false
	for _, v := range m.volumes {
		v.attachedTo = ""
	}
	for _, p := range m.pods {
		p.OptOut = false
	}
	m.allIsThere()
	for name := range planValues {
		if d, _ := Lookup(string(name)); d.Parse(m.values()[name].Text) != nil || m.values()[name].Text == nowhere || m.values()[name].Text == "zone:b" {
			m.own[name] = d.Default
		}
	}
	for name, value := range m.own { // what is said why it comes to nothing is followed
		m.system[name] = value
	}
	if m.system[PriorityClass] == "not a name" { // the storage system builds with it whatever Fairlead says
		m.system[PriorityClass] = ""
	}
	for range 150 {
		m.goWell(t)
		p := Make(m.facts())
		if !slices.ContainsFunc(p.Settings, func(s SettingPlan) bool { return !s.Applied || m.applied[s.Name] != s.Value.Text }) && !p.isDue() {
			return
		}
	}
	p := Make(m.facts())
	for _, s := range p.Settings {
		if !s.Applied {
			t.Fatalf("invariant 7: stuck: %s: %s (plan %v)", s.Name, s.Message, textOf(p))
		}
	}
	t.Fatalf("invariant 7: stuck at %v", textOf(p))
}
