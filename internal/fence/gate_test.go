package fence

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestAttach(t *testing.T) {
	rwo := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	rwx := pv("pv-1", rbd, "h-1", "a", "ReadWriteMany")
	block := rwx
	block.Block = true
	rox := pv("pv-1", rbd, "h-1", "a", "ReadOnlyMany")
	healthy := func() Holder {
		return Holder{Node: readyNamed("node-1", "boot-1"), Status: v1alpha1.NodeFenceStatus{
			Phase: v1alpha1.NodeHealthy, Reason: ReasonReady, Node: v1alpha1.MachineIdentity{UID: "uid-1", BootID: "boot-1", SystemUUID: "machine-1"},
		}}
	}
	notReady := func(h *Holder) { h.Node.Ready, h.Node.ReadyChanged = false, noon }
	tainted := func(h *Holder) { notReady(h); h.Node.OutOfService = true }
	in := func(phase v1alpha1.NodeFencePhase, reason, message string) func(*Holder) {
		return func(h *Holder) {
			tainted(h)
			h.Status.Phase, h.Status.Reason, h.Status.Message, h.Status.Incident = phase, reason, message, "now"
		}
	}
	fence := func(incident, driver, clusterID, state string) func(*Holder) {
		return func(h *Holder) {
			h.Status.Fences = append(h.Status.Fences, v1alpha1.Fence{Incident: incident, Driver: driver, ClusterID: clusterID, State: state})
		}
	}
	records := func(v v1alpha1.HeldVolume) func(*Holder) {
		v.PersistentVolume = "pv-1"
		return func(h *Holder) { h.Status.Volumes = []v1alpha1.HeldVolume{v} }
	}
	overridden := func(gate string) func(*Holder) {
		return func(h *Holder) { h.Override = Override{Gate: gate, At: noon.Add(time.Minute)} }
	}
	missed := func(h *Holder) { h.Status.ReadyChanged = at(h.Node.ReadyChanged.Add(-time.Second)) }
	replaced := func(h *Holder) { h.Node, h.Replaced = Node{Name: "node-1"}, true }
	const last = "volume pv-1 was last on node node-1, which is lost and not fenced: attached to node-2 now, it could have two writers. "
	const stillMounted = "StillMounted: volume pv-1 is or was still mounted on node node-1, from which it was detached: attached to node-2 now, it could have two writers. Kubernetes tries again by itself; see: kubectl get nodefence node-1 -o yaml"
	const again = "Kubernetes tries again by itself; see: kubectl describe nodefence node-1"
	for name, test := range map[string]struct {
		volume Volume
		holder []func(*Holder)
		mode   Mode
		to     string
		want   string // reason: message; "" is released
		soon   bool
	}{
		"a healthy holder":           {volume: rwo},
		"a holder that is not Ready": {volume: rwo, holder: []func(*Holder){notReady}, want: "NotReady: " + last + again},
		"a lost holder": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeLost, ReasonNotReady, "the node is not Ready")},
			want: "NotReady: " + last + "Fairlead reports: the node is not Ready. " + again},
		"a holder whose record is healthy yet, and tainted": {volume: rwo, holder: []func(*Holder){tainted}, want: "NotReady: " + last + again},
		"what a healthy record warns of": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeHealthy, ReasonTaintedButReady, "take the taint away")},
			want: "NotReady: " + last + "Fairlead reports: take the taint away. " + again},
		"a tainted Ready holder":                 {volume: rwo, holder: []func(*Holder){func(h *Holder) { h.Node.OutOfService = true }}, want: "NotReady: " + last + again},
		"a holder whose object is gone":          {volume: rwo, holder: []func(*Holder){func(h *Holder) { h.Node = Node{Name: "node-1"} }}, want: "NotReady: " + last + again},
		"a holder that nothing is known of":      {volume: rwo, holder: []func(*Holder){func(h *Holder) { *h = Holder{Node: Node{Name: "node-1"}} }}, want: "NotReady: " + last + again},
		"a machine that has taken its name":      {volume: rwo, holder: []func(*Holder){replaced}, want: "NotReady: " + strings.Replace(last, "node node-1", "the machine that was node node-1 before", 1) + again},
		"to the machine that has taken its name": {volume: rwo, to: "node-1", holder: []func(*Holder){replaced}, want: "NotReady: " + strings.NewReplacer("node node-1", "the machine that was node node-1 before", "node-2", "node-1").Replace(last) + again},
		"to the holder itself":                   {volume: rwo, to: "node-1", holder: []func(*Holder){tainted}},
		"fencing": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, "waiting for NetworkFence x")},
			want: "Fencing: " + last + "Fairlead reports: waiting for NetworkFence x. " + again, soon: true},
		"fencing, refused": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonAddressInUse, "not fenced: x")},
			want: "AddressInUse: " + last + "Fairlead reports: not fenced: x. " + again},
		"fenced":  {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFenced, ReasonFenced, "fenced"), fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"drained": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, "fenced"), fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"fenced for this storage, not yet for others": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, "x"), fence("now", other, "b", v1alpha1.FenceRequested), fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"fenced for another storage":                  {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, ""), fence("now", rbd, "b", v1alpha1.FenceFenced), fence("now", cephFS, "a", v1alpha1.FenceFenced)}, want: "Fencing: " + last + again, soon: true},
		"back in another boot, not seen yet": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), func(h *Holder) { h.Node = readyNamed("node-1", "boot-2") }},
			want: "Drained: " + last + again},
		"to a fenced node": {volume: rwo, to: "node-1", holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), func(h *Holder) { h.Node = readyNamed("node-1", "boot-2") }},
			want: "Drained: volume pv-1 can't be attached to node node-1: the node is fenced, and was not readmitted yet. " + again},
		"to a node that was not fenced yet":   {volume: rwo, to: "node-1", holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonNoIdentity, "")}},
		"to a node that an operator unfences": {volume: rwo, to: "node-1", holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), overridden(GateUnfence)}},
		"to a node that is readmitted":        {volume: rwo, to: "node-1", holder: []func(*Holder){in(v1alpha1.NodeReturned, ReasonTainted, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), func(h *Holder) { h.Node = readyNamed("node-1", "boot-2") }}},
		"to a node whose taint is overridden": {volume: rwo, to: "node-1", holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), overridden(GateTaint)}},
		"fenced in an unknown boot":           {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeDrained, ReasonDrained, ""), fence("now", rbd, "a", v1alpha1.FenceFenced), func(h *Holder) { h.Status.Node.BootID = "" }}},
		"what a healthy record says":          {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeHealthy, ReasonReady, "the node is Ready")}, want: "NotReady: " + last + again},
		"asked for":                           {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, ""), fence("now", rbd, "a", v1alpha1.FenceRequested)}, want: "Fencing: " + last + again, soon: true},
		"asked for, and not answered":         {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonUnanswered, ""), fence("now", rbd, "a", v1alpha1.FenceRequested)}, want: "Unanswered: " + last + again, soon: true},
		"fenced in another incident":          {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, ""), fence("before", rbd, "a", v1alpha1.FenceFenced)}, want: "Fencing: " + last + again, soon: true},
		"being unfenced":                      {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeUnfencing, ReasonUnfencing, ""), fence("now", rbd, "a", v1alpha1.FenceFenced)}, want: "Unfencing: " + last + again},
		"back from a boot":                    {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeReturned, ReasonTainted, ""), func(h *Holder) { h.Node = readyNamed("node-1", "boot-2") }}},
		"Ready without a boot, and fenced":    {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFenced, ReasonNotRebooted, ""), func(h *Holder) { h.Node.Ready, h.InUse = true, true }, fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"Ready without a boot, and not fenced": {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeFencing, ReasonFencing, ""), func(h *Holder) { h.Node.Ready, h.Node.OutOfService = true, false }, fence("now", rbd, "a", v1alpha1.FenceRequested)},
			want: "Fencing: " + last + again, soon: true},
		"still mounted on a healthy node": {volume: rwo, holder: []func(*Holder){func(h *Holder) { h.InUse = true }}, soon: true,
			want: stillMounted},
		"waited for on a healthy node":                        {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{Waiting: true}), func(h *Holder) { h.InUse = true }}},
		"waited for before an unseen boot":                    {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{Waiting: true}), func(h *Holder) { h.InUse, h.Node.Machine.BootID = true, "boot-2" }}, want: stillMounted, soon: true},
		"recorded, and in use":                                {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), func(h *Holder) { h.InUse = true }}, want: stillMounted, soon: true},
		"recorded, and released":                              {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{})}},
		"given time to end":                                   {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{Until: at(noon)})}, want: stillMounted, soon: true},
		"shared, given time to end":                           {volume: rwx, holder: []func(*Holder){records(v1alpha1.HeldVolume{Until: at(noon)})}},
		"back, and not looked at since":                       {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), func(h *Holder) { h.Status.Phase = v1alpha1.NodeLost }}, want: stillMounted, soon: true},
		"lost and back unseen":                                {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), missed}, want: stillMounted, soon: true},
		"lost unseen, a volume that waited":                   {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{Waiting: true}), missed}, want: stillMounted, soon: true},
		"back, a volume that waited":                          {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{Waiting: true}), func(h *Holder) { h.Status.Phase = v1alpha1.NodeLost }}, want: stillMounted, soon: true},
		"lost unseen, and rebooted":                           {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), missed, func(h *Holder) { h.Node.Machine.BootID = "boot-2" }}},
		"created again in the same boot":                      {volume: rwo, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), func(h *Holder) { h.Node.Machine.UID = "uid-2" }}, want: stillMounted, soon: true},
		"still mounted on the node itself":                    {volume: rwo, to: "node-1", holder: []func(*Holder){func(h *Holder) { h.InUse = true }}},
		"shared, mounted on a healthy node":                   {volume: rwx, holder: []func(*Holder){func(h *Holder) { h.InUse = true }}},
		"shared, on a node that is not Ready":                 {volume: rwx, holder: []func(*Holder){notReady}},
		"a shared block device in use on a healthy node":      {volume: block, holder: []func(*Holder){records(v1alpha1.HeldVolume{}), func(h *Holder) { h.InUse = true }}},
		"a shared block device on a node that is not Ready":   {volume: block, holder: []func(*Holder){notReady}, want: "NotReady: " + last + again},
		"a shared block device, given time to end":            {volume: block, holder: []func(*Holder){records(v1alpha1.HeldVolume{Until: at(noon)})}, want: stillMounted, soon: true},
		"a shared block device, detached by force and in use": {volume: block, holder: []func(*Holder){records(v1alpha1.HeldVolume{Detached: true}), func(h *Holder) { h.InUse = true }}, want: stillMounted, soon: true},
		"a shared block device, detached by force":            {volume: block, holder: []func(*Holder){records(v1alpha1.HeldVolume{Detached: true})}},
		"a shared block device in use, not on record":         {volume: block, holder: []func(*Holder){func(h *Holder) { h.InUse = true }}},
		"a shared block device, fenced":                       {volume: block, holder: []func(*Holder){in(v1alpha1.NodeFenced, ReasonFenced, ""), fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"shared, on a node that is out of service":            {volume: rwx, holder: []func(*Holder){tainted}, want: "NotReady: " + last + again},
		"shared, on a node that is gone":                      {volume: rwx, holder: []func(*Holder){func(h *Holder) { h.Node = Node{Name: "node-1"} }}, want: "NotReady: " + last + again},
		"shared, fenced":                                      {volume: rwx, holder: []func(*Holder){in(v1alpha1.NodeFenced, ReasonFenced, ""), fence("now", rbd, "a", v1alpha1.FenceFenced)}},
		"read only":                                           {volume: rox, holder: []func(*Holder){tainted}},
		"not CSI":                                             {volume: Volume{Name: "pv-1"}, holder: []func(*Holder){tainted}},
		"an unprotected driver":                               {volume: pv("pv-1", "ebs.csi.aws.com", "h", ""), holder: []func(*Holder){tainted}},
		"off":                                                 {volume: rwo, holder: []func(*Holder){tainted}, mode: ModeOff},
		"guard only":                                          {volume: rwo, holder: []func(*Holder){tainted}, mode: ModeGuard, want: "NotReady: " + last + again},
		"overridden":                                          {volume: rwo, holder: []func(*Holder){tainted, overridden(GateAttach)}},
		"overridden though it is mounted":                     {volume: rwo, holder: []func(*Holder){func(h *Holder) { h.InUse = true }, overridden(GateAttach)}},
		"overridden, and back since":                          {volume: rwo, holder: []func(*Holder){func(h *Holder) { h.InUse, h.Node.ReadyChanged = true, noon.Add(time.Hour) }, overridden(GateAttach)}, want: stillMounted, soon: true},
		"the taint overridden, not this":                      {volume: rwo, holder: []func(*Holder){tainted, overridden(GateTaint)}, want: "NotReady: " + last + again},
		"to be unfenced by override":                          {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeUnfencing, ReasonOverridden, ""), overridden(GateUnfence)}, want: "Overridden: " + last + again},
		"unfenced by override, and lost still":                {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeLost, ReasonOverridden, ""), overridden(GateUnfence)}},
		"unfenced by override, and lost another time":         {volume: rwo, holder: []func(*Holder){in(v1alpha1.NodeLost, ReasonOverridden, ""), overridden(GateUnfence), func(h *Holder) { h.Node.ReadyChanged = noon.Add(time.Hour) }}, want: "Overridden: " + last + again},
	} {
		t.Run(name, func(t *testing.T) {
			h, policy, to := healthy(), allFenced(), cmp.Or(test.to, "node-2")
			for _, how := range test.holder {
				how(&h)
			}
			if test.mode != "" {
				policy = with(policy, StoragePolicy{Mode: test.mode})
			}
			held := Attach(test.volume, to, []Holder{{Node: readyNamed("node-3", "boot-3")}, h}, policy)
			got := ""
			if held != nil {
				says, linked := strings.CutSuffix(held.Message, Link(held.Reason))
				got = held.Reason + ": " + says
				must.True(t, linked, "no link to the reason: %s", held.Message)
				must.True(t, held.Node == "node-1" && held.Soon == test.soon, "held by %s, soon %t", held.Node, held.Soon)
			}
			must.True(t, got == test.want, "got\n%s\nwant\n%s", got, test.want)
		})
	}
}

func TestAddTaint(t *testing.T) {
	n := readyNamed("node-1", "boot-1")
	want := "node node-1 is Ready: with this taint Kubernetes takes its volumes away while they are written to. Shut it down first, and wait until it is not Ready; or, if you must: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=taint: <why>'"
	for _, test := range []struct {
		ready bool
		gate  string
		may   bool
	}{{true, "", false}, {true, GateAttach, false}, {true, GateTaint, true}, {false, "", true}} {
		n.Ready = test.ready
		r := AddTaint(n, Record{Override: Override{Gate: test.gate}})
		if (r == nil) != test.may || r != nil && *r != (Refusal{ReasonTaintedButReady, want}) {
			t.Errorf("Ready %t, overridden %q: got %+v", test.ready, test.gate, r)
		}
	}
}

func TestRemoveTaint(t *testing.T) {
	for name, test := range map[string]struct {
		of   func(*testing.T) *story
		then func(*story)
		may  bool
	}{
		"of a healthy node":                       {healthy, func(*story) {}, true},
		"of a lost node that is not fenced":       {lost, func(*story) {}, true},
		"of a node that is to be fenced":          {lost, func(s *story) { s.taint(true).look() }, false},
		"of a fenced node":                        {fenced, func(*story) {}, false},
		"of a fenced node that is Ready":          {fenced, func(s *story) { s.Node.Ready = true; s.look() }, false},
		"of a fenced node that has booted":        {fenced, func(s *story) { s.boot("boot-2") }, true},
		"of a fenced node that has booted unseen": {fenced, func(s *story) { s.returnSameBoot().Node.Machine.BootID = "boot-2" }, true},
		"of one that is back":                     {fenced, func(s *story) { s.boot("boot-2").look() }, true},
		"of a node whose boot is not known":       {fenced, func(s *story) { s.boot("") }, false},
		"overridden":                              {fenced, func(s *story) { s.override(GateTaint) }, true},
		"of a node that is unfenced by override":  {fenced, func(s *story) { s.override(GateUnfence) }, true},
		"of one whose volumes are to be released": {fenced, func(s *story) { s.override(GateAttach) }, false},
		"of a node that nothing can be asked of":  {lost, func(s *story) { s.Status.Identities = nil; s.taint(true).look() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := test.of(t).do(test.then)
			r := RemoveTaint(s.Node, Record{Name: "node-1", Status: s.Status, Override: s.Override})
			want := `node node-1 is being fenced or is fenced, and has not booted since (boot "boot-1"): reboot it first; or, if you must: kubectl annotate --overwrite nodefence node-1 'fairlead.io/override-gate=taint: <why>'`
			must.True(t, (r == nil) == test.may && (r == nil || *r == (Refusal{ReasonNotRebooted, want})), "got %+v", r)
		})
	}
}
