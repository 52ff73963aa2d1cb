package fence

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	rwo   = pv("pv-1", rbd, "a", "ReadWriteOnce")
	block = Volume{Name: "pv-1", Driver: rbd, Handle: rwo.Handle, ClusterID: "a", AccessModes: []string{"ReadWriteMany"}, Block: true}
	kinds = []struct {
		name   string
		volume Volume
	}{
		{"rwo", rwo},
		{"rwop", pv("pv-1", rbd, "a", "ReadWriteOncePod")},
		{"block", block}, // shared
		{"rwo+rox", pv("pv-1", rbd, "a", "ReadWriteOnce", "ReadOnlyMany")},
		{"rwx", pv("pv-1", rbd, "a", "ReadWriteMany")}, // a file system
		{"rox", pv("pv-1", rbd, "a", "ReadOnlyMany")},
	}
)

// holderIn a state, in the words of states: node-1, which is Ready in the boot on record, and has the volume attached and on record.
func holderIn(t *testing.T, words string) Holder {
	n := readyNode("node-1", "machine-1", "boot-1", "192.168.1.1")
	n.InUse = []string{UniqueName(rbd, rwo.Handle)}
	n.Attached = n.InUse
	h := Holder{Node: n, Record: "node-1-0a1b", Spec: v1alpha1.NodeFenceSpec{
		NodeName: "node-1", Boot: n.Boot, NodeUID: n.UID, ReadyChanged: at(n.ReadyChanged), Identities: list(identity(rbd, "a", "10.0.0.1/32")), Volumes: []v1alpha1.HeldVolume{rwo.Held()},
	}}
	for word := range strings.SplitSeq(words, ", ") {
		how, known := states[word]
		must.True(t, known, "there is no state %q", word)
		how(&h)
	}
	return h
}

var states = map[string]func(*Holder){
	"healthy": func(*Holder) {},
	// What the Node shows.
	"detached":        func(h *Holder) { h.Node.Attached = nil },
	"shows nothing":   func(h *Holder) { h.Node.Attached, h.Node.InUse = nil, nil },
	"not Ready":       func(h *Holder) { h.Node.Ready, h.Node.ReadyChanged = false, noon },
	"lost again":      func(h *Holder) { h.Node.Ready, h.Node.ReadyChanged = false, noon.Add(time.Minute) },
	"back":            func(h *Holder) { h.Node.Ready, h.Node.ReadyChanged = true, noon.Add(time.Minute) },
	"tainted":         func(h *Holder) { h.Node.OutOfService = true },
	"recreated":       func(h *Holder) { h.Node.UID = "uid-2" },
	"rebooted":        func(h *Holder) { h.Node.Boot.BootID = "boot-2" },
	"no Node":         func(h *Holder) { h.Node = Node{Name: "node-1"} },
	"another machine": func(h *Holder) { h.Node, h.Replaced = Node{Name: "node-1"}, true },
	"a request":       func(h *Holder) { h.Request.Gate = GateAttach },
	// What is on record.
	"unrecorded":      func(h *Holder) { h.Spec.Volumes = nil },
	"no record":       func(h *Holder) { h.Record, h.Spec = "", v1alpha1.NodeFenceSpec{} },
	"only the volume": func(h *Holder) { h.Record, h.Spec = "", v1alpha1.NodeFenceSpec{Volumes: h.Spec.Volumes} },
	"lost": func(h *Holder) {
		h.Node.Ready, h.Node.ReadyChanged, h.Spec.LostSince, h.Spec.ReadyChanged = false, noon, at(noon), at(noon)
	},
	"gone":              func(h *Holder) { h.Node, h.Spec.LostSince, h.Spec.NodeUID = Node{Name: "node-1"}, at(noon), "" },
	"in grace":          func(h *Holder) { h.Spec.Volumes[0].Until = at(noon.Add(5 * time.Minute)) },
	"released":          func(h *Holder) { h.Spec.Volumes[0].Released = true },
	"unseen":            func(h *Holder) { h.Spec.Unseen = true },
	"of no boot":        func(h *Holder) { h.Spec.Boot = v1alpha1.Boot{} },
	"over":              func(h *Holder) { h.Spec.Over = true },
	"one more address":  func(h *Holder) { h.Spec.Identities = list(identity(rbd, "a", "10.0.0.1/32", "10.0.0.2/32")) },
	"fenced":            fenceOf(rbd, "a", v1alpha1.FenceFenced, "10.0.0.1/32"),
	"fenced by both":    fenceOf(rbd, "a", v1alpha1.FenceFenced, "10.0.0.1/32", "10.0.0.2/32"),
	"fenced for b":      fenceOf(rbd, "b", v1alpha1.FenceFenced, "10.0.0.1/32"),
	"fenced for CephFS": fenceOf(cephFS, "a", v1alpha1.FenceFenced, "10.0.0.1/32"),
	"requested":         fenceOf(rbd, "a", v1alpha1.FenceRequested, "10.0.0.1/32"),
	"refused by driver": func(h *Holder) { h.Spec.Fences[0].Message = "no such pool" },
	"unfencing":         fenceOf(rbd, "a", v1alpha1.FenceUnfencing, "10.0.0.1/32"),
}

func fenceOf(driver, clusterID, state string, cidrs ...string) func(*Holder) {
	return func(h *Holder) {
		h.Spec.Fences = append(h.Spec.Fences, v1alpha1.Fence{Name: "f", Driver: driver, ClusterID: clusterID, State: state, CIDRs: cidrs})
	}
}

func TestGateByAccessMode(t *testing.T) {
	const (
		notHeld   = ""
		exclusive = "rwo rwop"
		oneWriter = "rwo rwop block rwo+rox"
		all       = "rwo rwop block rwo+rox rwx"
	)
	for name, test := range map[string]struct{ holder, held string }{
		"healthy, and attached":                       {"healthy", exclusive},
		"healthy, and attached, not on record yet":    {"unrecorded", exclusive},
		"healthy, and detached while it is in use":    {"detached", oneWriter},
		"healthy, and waits for it":                   {"detached, unrecorded", notHeld},
		"healthy, and given back ahead of the record": {"shows nothing", notHeld},
		"returned, and the kubelet does not list it":  {"shows nothing, in grace", oneWriter},
		"returned, and attached again":                {"in grace", oneWriter},
		"returned, and on record as lost":             {"lost, back, shows nothing", oneWriter},
		"lost and back unseen":                        {"back, shows nothing", oneWriter},
		"lost and back unseen, and it lists it":       {"back, detached, unrecorded", oneWriter},
		"recreated unseen":                            {"recreated, shows nothing", oneWriter},
		"not Ready":                                   {"not Ready", oneWriter},
		"not Ready, and on record as lost":            {"lost", oneWriter},
		"not Ready, and not on record":                {"not Ready, unrecorded", oneWriter},
		"not Ready, and it never had the volume":      {"not Ready, unrecorded, shows nothing", notHeld},
		"tainted":                                     {"lost, tainted", all},
		"tainted, and detached by force":              {"lost, tainted, shows nothing", all},
		"tainted, and Ready":                          {"tainted, detached", all},
		"gone":                                        {"gone", all},
		"gone, and the record does not show that yet": {"no Node", all},
		"replaced": {"gone, another machine", all},
		"over":     {"gone, over", notHeld},
		"rebooted, and the record does not show that yet": {"lost, rebooted", notHeld},
		"fenced":                                             {"lost, tainted, fenced", notHeld},
		"fenced, and gone":                                   {"gone, fenced", notHeld},
		"fenced, and back without a reboot":                  {"lost, fenced, back", notHeld},
		"fenced, and may have booted since":                  {"gone, fenced, unseen", all},
		"fenced, and an identity has got an address since":   {"lost, tainted, fenced, one more address", all},
		"fenced by two addresses":                            {"lost, tainted, fenced by both, one more address", notHeld},
		"fenced for another cluster":                         {"lost, tainted, fenced for b", all},
		"fenced for another driver":                          {"lost, tainted, fenced for CephFS", all},
		"a fence is requested":                               {"lost, tainted, requested", all},
		"a fence is requested, and it is back":               {"lost, requested, back", all},
		"being unfenced":                                     {"lost, tainted, unfencing", all},
		"no record, healthy, and attached":                   {"no record", exclusive},
		"no record, healthy, and lists it only":              {"no record, detached", oneWriter},
		"no record, healthy, and shows nothing":              {"no record, shows nothing", notHeld},
		"no record, not Ready, and attached":                 {"no record, not Ready", oneWriter},
		"no record, tainted, and attached":                   {"no record, not Ready, tainted", all},
		"no record, gone, and attached":                      {"only the volume, no Node", all},
		"the boot is unseen":                                 {"gone, unseen, of no boot", all},
		"released by an act":                                 {"lost, released", notHeld},
		"released by an act, and tainted":                    {"lost, tainted, released", notHeld},
		"released by an act, and gone":                       {"gone, released", notHeld},
		"released by an act, of an unseen boot":              {"gone, unseen, of no boot, released", notHeld},
		"released by an act, and back":                       {"lost, released, back", oneWriter},
		"released by an act of an earlier loss":              {"lost, released, lost again", oneWriter},
		"released by an act of an earlier loss, recreated":   {"lost, released, recreated", oneWriter},
		"released by an act of an earlier loss, now tainted": {"lost, released, lost again, tainted", all},
	} {
		t.Run(name, func(t *testing.T) {
			h := holderIn(t, test.holder)
			var got []string
			for _, k := range kinds {
				elsewhere := Holder{Node: readyNode("node-2", "machine-2", "boot-2", "192.168.1.2")}
				for i := range h.Spec.Volumes {
					h.Spec.Volumes[i].Shared = k.volume.HasManyWriters()
				}
				if held := Attach(k.volume, "node-2", []Holder{elsewhere, h}, allFenced()); held != nil {
					got = append(got, k.name)
					must.Equal(t, held.Node, "node-1")
				}
			}
			must.Equal(t, strings.Join(got, " "), test.held, "held volumes")
			if h.Record != "" && !h.Replaced {
				agreesWithPolicies(t, h)
			}
		})
	}
}

// Access modes may be edited at any time, and two PersistentVolumes may have one image: the stricter of what was seen and what is
// there now counts.
func TestGateGoesByTheStricterModes(t *testing.T) {
	rwx := pv("pv-1", rbd, "a", "ReadWriteMany")
	for name, c := range map[string]struct {
		recorded []Volume
		now      Volume
		held     bool
	}{
		"shared then and now":   {[]Volume{rwx}, rwx, false},
		"exclusive then":        {[]Volume{rwo}, rwx, true},
		"exclusive now":         {[]Volume{rwx}, rwo, true},
		"exclusive by one name": {[]Volume{rwx, {Name: "pv-2", Driver: rbd, Handle: rwx.Handle, ClusterID: "a", AccessModes: []string{"ReadWriteOnce"}}}, rwx, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := holderIn(t, "lost")
			h.Spec.Volumes = nil
			for _, v := range c.recorded {
				h.Spec.Volumes = join(h.Spec.Volumes, v.Held())
			}
			must.Equal(t, len(h.Spec.Volumes), 1)
			must.Equal(t, Attach(c.now, "node-2", []Holder{h}, allFenced()) != nil, c.held)
		})
	}
}

// agreesWithPolicies: once a record is written, it has the volumes that the gate holds, for when Fairlead is down. What a healthy
// node has attached is on no list: Kubernetes sees to it.
func agreesWithPolicies(t *testing.T, h Holder) {
	t.Helper()
	f := Facts{Now: noon.Add(2 * time.Minute), Record: h.Record, Spec: h.Spec, Node: h.Node, Later: laterBoot(h.Spec, h.Node), Policy: allFenced()}
	if slices.Contains(h.Node.InUse, UniqueName(rbd, rwo.Handle)) {
		f.Holding = []v1alpha1.HeldVolume{rwo.Held()}
	}
	for _, r := range h.Spec.Fences {
		n := NetworkFence{Name: r.Name, Class: "fence-" + r.Driver, CIDRs: r.CIDRs, Unfenced: isUnfencing(r)}
		if r.State == v1alpha1.FenceFenced {
			succeeded(&n)
		}
		f.Fences, f.Classes = append(f.Fences, n), append(f.Classes, Class{n.Class, r.Driver, r.ClusterID})
	}
	for range 3 {
		f.Spec = Next(f).Spec
	}
	h.Spec = f.Spec
	held := Attach(rwo, "node-2", []Holder{h}, f.Policy) != nil
	attached := f.working() && h.Node.hasAttached(rwo) && !slices.ContainsFunc(f.Spec.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Until != nil })
	must.True(t, held && attached || held == slices.Contains(f.Spec.Withheld, "pv-1"), "the gate holds pv-1: %t, and withheld are %v: %+v", held, f.Spec.Withheld, f.Spec)
}

func TestGateSaysWhy(t *testing.T) {
	const (
		last  = "volume pv-1 was last on node node-1, which is lost and not fenced: attached to node-2 now, it could have two writers. "
		again = "Kubernetes tries again by itself; see: kubectl describe nodefence node-1-0a1b"
		still = "volume pv-1 is or was still mounted on node node-1, from which it was detached: attached to node-2 now, it could have two writers. Kubernetes tries again by itself; see: kubectl get nodefence node-1-0a1b -o yaml"
	)
	says := func(phase v1alpha1.NodeFencePhase, reason, message string) v1alpha1.NodeFenceStatus {
		return v1alpha1.NodeFenceStatus{Phase: phase, Reason: reason, Message: message}
	}
	for name, test := range map[string]struct {
		holder string
		status v1alpha1.NodeFenceStatus
		volume *Volume
		to     string
		mode   Mode
		want   string // reason: message; "" is allowed
		soon   bool
	}{
		"not Ready, and not on record as lost": {holder: "not Ready", status: says(v1alpha1.NodeHealthy, ReasonReady, ""), want: "NotReady: " + last + again},
		"on record as lost":                    {holder: "lost", status: says(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready"), want: "NotReady: " + last + "Fairlead reports: the node is not Ready. " + again},
		"a warning of a healthy record":        {holder: "tainted", status: says(v1alpha1.NodeHealthy, ReasonTaintedButReady, "take the taint away"), want: "NotReady: " + last + "Fairlead reports: take the taint away. " + again},
		"nothing is known":                     {holder: "only the volume, no Node", want: "NotReady: " + last + strings.TrimSuffix(again, "-0a1b")},
		"being fenced":                         {holder: "lost, tainted, requested", status: says(v1alpha1.NodeFencing, ReasonFencing, "waiting for x"), want: "Fencing: " + last + "Fairlead reports: waiting for x. " + again, soon: true},
		"not answered":                         {holder: "lost, tainted, requested", status: says(v1alpha1.NodeFencing, ReasonUnanswered, ""), want: "Unanswered: " + last + again, soon: true},
		"refused by the driver":                {holder: "lost, tainted, requested, refused by driver", status: says(v1alpha1.NodeFencing, ReasonDriverFailed, ""), want: "DriverFailed: " + last + again},
		"refused by Fairlead":                  {holder: "lost, tainted", status: says(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: x"), want: "AddressInUse: " + last + "Fairlead reports: not fenced: x. " + again},
		"a person's request is on its way":     {holder: "lost, a request", want: "NotReady: " + last + again, soon: true},
		"replaced":                             {holder: "gone, another machine", want: "NotReady: " + strings.Replace(last, "node node-1", "the machine that was node node-1 before", 1) + again},
		"to the machine that has its name":     {holder: "gone, another machine", to: "node-1", want: "NotReady: " + strings.NewReplacer("node node-1", "the machine that was node node-1 before", "to node-2", "to node-1").Replace(last) + again},
		"to a node that is not known yet":      {holder: "lost", to: "-", want: "NotReady: " + strings.Replace(last, "attached to node-2", "used elsewhere", 1) + again},
		"detached, and in use":                 {holder: "detached", want: "StillMounted: " + still, soon: true},
		"to the node itself":                   {holder: "healthy", to: "node-1"},
		"to the node itself, in its grace":     {holder: "shows nothing, in grace", to: "node-1"},
		"to the node itself, fenced":           {holder: "lost, fenced, back", status: says(v1alpha1.NodeFenced, ReasonNotRebooted, ""), to: "node-1", want: "NotRebooted: volume pv-1 can't be attached to node node-1: the node is fenced, and was not readmitted yet. " + again},
		"to the node itself, being unfenced":   {holder: "unfencing", to: "node-1"},
		"to the node itself, rebooted":         {holder: "fenced, rebooted", to: "node-1"},
		"not CSI":                              {holder: "lost, tainted", volume: &Volume{Name: "pv-1"}},
		"an unprotected driver":                {holder: "lost, tainted", volume: &Volume{Name: "pv-1", Driver: "ebs.csi.aws.com", Handle: rwo.Handle}},
		"switched off":                         {holder: "lost, tainted", mode: ModeOff},
		"guard only":                           {holder: "lost, tainted", mode: ModeGuard, want: "NotReady: " + last + again},
	} {
		t.Run(name, func(t *testing.T) {
			h, policy := holderIn(t, test.holder), allFenced()
			h.Status = test.status
			if test.mode != "" {
				policy.Storages = func(string) (StoragePolicy, bool) { return StoragePolicy{Mode: test.mode}, true }
			}
			held, got := Attach(*cmp.Or(test.volume, &rwo), strings.TrimPrefix(cmp.Or(test.to, "node-2"), "-"), []Holder{h}, policy), ""
			if held != nil {
				says, linked := strings.CutSuffix(held.Message, Link(held.Reason))
				got = held.Reason + ": " + says
				must.True(t, linked && held.Node == "node-1", "held by %s, and no link to the reason: %s", held.Node, held.Message)
			}
			must.True(t, got == test.want, "got\n%s\nwant\n%s", got, test.want)
			must.True(t, held == nil || held.Soon == test.soon, "it may be in effect soon: %t", held != nil && held.Soon)
		})
	}
}

func TestAddTaint(t *testing.T) {
	n := readyNode("node-1", "machine-1", "boot-1", "192.168.1.1")
	act := func(gate string, of time.Time) Record {
		return Record{Spec: v1alpha1.NodeFenceSpec{Acts: []v1alpha1.Act{{Gate: gate, Of: at(of)}}}}
	}
	asks := func(gate string, of time.Time) Record {
		return Record{Spec: v1alpha1.NodeFenceSpec{NodeUID: n.UID, ReadyChanged: at(of)}, Request: Request{Gate: gate}}
	}
	for name, test := range map[string]struct {
		ready bool
		r     Record
		may   bool
	}{
		"Ready":                            {true, Record{}, false},
		"not Ready":                        {false, Record{}, true},
		"a person asks":                    {true, asks(GateTaint, n.ReadyChanged), true},
		"a person asked of another state":  {true, asks(GateTaint, n.ReadyChanged.Add(-time.Hour)), false},
		"a person asks for something else": {true, asks(GateAttach, n.ReadyChanged), false},
		"a person has said so":             {true, act(GateTaint, n.ReadyChanged), true},
		"a person has said so before":      {true, act(GateTaint, n.ReadyChanged.Add(-time.Hour)), false},
		"a person has said something else": {true, act(GateAttach, n.ReadyChanged), false},
	} {
		t.Run(name, func(t *testing.T) {
			n.Ready = test.ready
			r := AddTaint(n, test.r)
			want := Refusal{ReasonTaintedButReady, "node node-1 is Ready: with this taint Kubernetes takes its volumes away while they are written to. Shut it down first, and wait until it is not Ready; or, if you must: " + OverrideCommand("node-1", GateTaint)}
			must.True(t, (r == nil) == test.may && (r == nil || *r == want), "got %+v", r)
		})
	}
}

func TestRemoveTaint(t *testing.T) {
	tales(t, requested, map[string]tale[bool]{
		"of a node that is to be fenced":           {func(*story) {}, false},
		"of a node that is to be fenced, and back": {func(s *story) { s.comeBack() }, true},
		"of a fenced node":                         {func(s *story) { s.answer() }, false},
		"of a fenced node that is Ready":           {func(s *story) { s.answer().comeBack().look() }, false},
		"of a fenced node that has booted":         {func(s *story) { s.answer().boot("boot-2") }, true},
		"of a fenced node that has booted unseen":  {func(s *story) { s.answer().Node.Boot.BootID = "boot-2" }, true},
		"of a node that is readmitted":             {func(s *story) { s.answer().bootUntainted("boot-2").answer().answer().follow() }, true},
		"a person asks to unfence":                 {func(s *story) { s.answer().request(GateUnfence) }, true},
		"a person has said that it may go":         {func(s *story) { s.answer().act(GateTaint) }, true},
		"of one whose volumes were released":       {func(s *story) { s.answer().act(GateAttach) }, false},
	}, func(s *story, may bool) {
		r := RemoveTaint(s.Node, Record{Name: record1, Spec: s.Spec, Request: s.Request})
		want := Refusal{ReasonNotRebooted, `node node-1 is being fenced or is fenced, and has not booted since (boot "boot-1"): reboot it first; or, if you must: ` + OverrideCommand(record1, GateTaint)}
		must.True(s, (r == nil) == may && (r == nil || *r == want), "got %+v", r)
	})
	s := lost(t)
	s.Spec.Identities = nil
	must.True(t, RemoveTaint(s.taint(true).look().Node, Record{Spec: s.Spec}) == nil, "the taint stays though nothing can be fenced")
}

func TestDeletionOfWorkingNodeIsWarnedOf(t *testing.T) {
	s := healthy(t)
	must.Equal(t, DeletesWorkingNode(s.Node, Record{Spec: s.Spec}), "node node-1 is Ready and has volumes (pv-1). Without its Node they are held, and after 40s the storage blocks the machine, whose pods may still run: cordon and drain a node before you delete it, or restart its kubelet now, which registers it again")
	must.Equal(t, DeletesWorkingNode(s.Node, Record{})+DeletesWorkingNode(s.lose().Node, Record{Spec: s.Spec}), "", "without volumes, or lost")
}
