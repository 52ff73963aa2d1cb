package fence

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// recordOf a boot of node-1, with what is on record of it.
func recordOf(machine, boot string, volumes ...string) Record {
	b := bootOf(machine, boot)
	if boot == "" {
		b = v1alpha1.Boot{}
	}
	return Record{Name: textOf(machine, boot), Spec: v1alpha1.NodeFenceSpec{NodeName: "node-1", Boot: b, LostSince: at(noon), Volumes: shown(volumes...)}}
}

func textOf(machine, boot string) string { return strings.TrimSuffix(machine+"-"+boot, "-") }

// toBeFenced is a record of a boot that a fence was requested of.
func toBeFenced(r Record) Record {
	r.Spec.Fences = []v1alpha1.Fence{{Name: "f", Driver: rbd, ClusterID: "a", State: v1alpha1.FenceRequested}}
	return r
}

func knownOff(r Record) Record {
	r.Spec.Volumes = slices.Clone(r.Spec.Volumes)
	for i := range r.Spec.Volumes {
		r.Spec.Volumes[i].Released = true
	}
	return r
}

func isOver(r Record) Record {
	r.Spec.Over, r.Spec.Volumes = true, nil
	return r
}

func shown(volumes ...string) (all []v1alpha1.HeldVolume) {
	for _, v := range volumes {
		all = append(all, held(v, rbd, "a"))
	}
	return all
}

// Several machines and boots have had one name: volumes and fences belong to one of them. pv-1, pv-2 and pv-3 are shown.
func TestShownVolumesAreAssignedToBoots(t *testing.T) {
	first, second := recordOf("m1", "b1", "pv-1"), recordOf("m1", "b2", "pv-1", "pv-2")
	strange := recordOf("m2", "b7", "pv-1")
	is := func(machine, boot string) Node {
		n := readyNode("node-1", machine, boot, "192.168.1.1")
		for _, v := range shown("pv-1", "pv-2", "pv-3") {
			n.Attached = append(n.Attached, UniqueName(v.Driver, v.VolumeHandle))
		}
		return n
	}
	gone, b2 := Node{Name: "node-1"}, Deletion{Boot: bootOf("m1", "b2")}
	for name, test := range map[string]struct {
		Namesakes
		holding string // of each record, and what is of the record to create
		holders string // of pv-3
		later   string // records of boots that are over
		unseen  string // records of boots of which a later one may have been missed
	}{
		"the second boot is present":                    {Namesakes{Node: is("m1", "b2"), Records: []Record{first, second}}, "m1-b1: ; m1-b2: pv-1 pv-2 pv-3", "m1-b2", "m1-b1", ""},
		"a third boot has no record yet":                {Namesakes{Node: is("m1", "b3"), Records: []Record{first, second}}, "m1-b1: ; m1-b2: ; m1-b3 is new: pv-1 pv-2 pv-3", "without record", "", ""},
		"another machine is present":                    {Namesakes{Node: is("m2", "b7"), Records: []Record{toBeFenced(first), strange}}, "m1-b1: ; m2-b7: pv-1 pv-2 pv-3", "m2-b7", "", ""},
		"another machine has no record yet":             {Namesakes{Node: is("m2", "b7"), Records: []Record{first}}, "m1-b1: ; m2-b7 is new: pv-1 pv-2 pv-3", "without record", "", ""},
		"a new node":                                    {Namesakes{Node: is("m1", "b1")}, "m1-b1 is new: pv-1 pv-2 pv-3", "without record", "", ""},
		"the kubelet has not reported a boot":           {Namesakes{Node: is("m1", ""), Records: []Record{first}}, "m1-b1: ", "without record", "", ""},
		"gone, last seen in the second boot":            {Namesakes{Node: gone, Last: b2, Records: []Record{first, second}}, "m1-b1: pv-1 pv-3; m1-b2: pv-1 pv-2 pv-3", "without record", "m1-b1", ""},
		"gone, last seen in the second boot, not first": {Namesakes{Node: gone, Last: b2, Records: []Record{isOver(first), second}}, "m1-b1: ; m1-b2: pv-1 pv-2 pv-3", "without record", "m1-b1", ""},
		"gone, last seen in a boot without record":      {Namesakes{Node: gone, Last: b2, Records: []Record{first}}, "m1-b1: pv-1 pv-2 pv-3; m1-b2 is new: pv-1 pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, last seen in that boot, fenced before":   {Namesakes{Node: gone, Last: b2, Records: []Record{toBeFenced(first)}}, "m1-b1: pv-1; m1-b2 is new: pv-1 pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, and its deletion was not seen":           {Namesakes{Node: gone, Records: []Record{first}}, "m1-b1: pv-1 pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, not seen, and to be fenced":              {Namesakes{Node: gone, Records: []Record{toBeFenced(first)}}, "m1-b1: pv-1; unseen: pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, not seen, and known to be off":           {Namesakes{Node: gone, Records: []Record{knownOff(first)}}, "m1-b1: pv-1; unseen: pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, not seen, and over":                      {Namesakes{Node: gone, Records: []Record{isOver(first)}}, "m1-b1: ; unseen: pv-1 pv-2 pv-3", "without record", "", "m1-b1"},
		"gone, and to be fenced in its last boot":       {Namesakes{Node: gone, Last: b2, Records: []Record{toBeFenced(second)}}, "m1-b2: pv-1 pv-2 pv-3", "without record", "", ""},
		"gone, and nothing is known":                    {Namesakes{Node: gone}, "unseen: pv-1 pv-2 pv-3", "without record", "", ""},
		"gone, and an unseen boot has a record":         {Namesakes{Node: gone, Records: []Record{recordOf("unseen-boot", "", "pv-1", "pv-2", "pv-3")}}, "unseen-boot: pv-1 pv-2 pv-3", "unseen-boot", "", ""},
		"an unseen boot, and another is present":        {Namesakes{Node: is("m1", "b1"), Records: []Record{first, recordOf("unseen-boot", "", "pv-3")}}, "m1-b1: pv-1 pv-2 pv-3; unseen-boot: ", "m1-b1 unseen-boot", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.Shown = shown("pv-1", "pv-2", "pv-3")
			var holding, later, unseen, holders []string
			for i, r := range test.Records {
				f := test.Of(i)
				if holding = append(holding, r.Name+": "+strings.Join(VolumeNames(f.Holding), " ")); f.Later {
					later = append(later, r.Name)
				}
				if f.Deleted.Boot != r.Spec.Boot && !test.Node.Exists && !f.Later {
					unseen = append(unseen, r.Name)
				}
			}
			if f, missing := test.Missing(noon, allFenced()); missing {
				is := "unseen"
				if b := f.Spec.Boot; b.BootID != "" {
					is = textOf(b.SystemUUID, b.BootID) + " is new"
				}
				holding = append(holding, is+": "+strings.Join(VolumeNames(f.Spec.Volumes), " "))
			}
			for _, h := range test.Holders(pv("pv-3", rbd, "a")) {
				if h.Record == "" {
					h.Record = "without record"
				}
				holders = append(holders, h.Record)
			}
			must.Equal(t, strings.Join(holding, "; "), test.holding, "volumes")
			must.Equal(t, strings.Join(holders, " "), test.holders, "holders of pv-3")
			must.Equal(t, strings.Join(later, " "), test.later, "over")
			must.Equal(t, strings.Join(unseen, " "), test.unseen, "unseen")
		})
	}
}

func TestMissingRecord(t *testing.T) {
	off := func(p *Policy) { p.Storages = func(string) (StoragePolicy, bool) { return StoragePolicy{}, false } }
	ready := readyNode("node-1", "m1", "b1", "192.168.1.1")
	notReady := ready
	notReady.Ready = false
	gone := Node{Name: "node-1"}
	for name, c := range map[string]struct {
		n      Namesakes
		policy func(*Policy)
		want   v1alpha1.NodeFenceSpec // zero: no record is missing
	}{
		"of a working node":                      {n: Namesakes{Node: ready}, want: v1alpha1.NodeFenceSpec{Boot: ready.Boot, NodeUID: "uid-1", ReadyChanged: at(ready.ReadyChanged)}},
		"of a node that is not Ready":            {n: Namesakes{Node: notReady, Shown: shown("pv-1")}, want: v1alpha1.NodeFenceSpec{Boot: ready.Boot, NodeUID: "uid-1", ReadyChanged: at(ready.ReadyChanged), LostSince: at(noon), Volumes: shown("pv-1")}},
		"of an unseen boot":                      {n: Namesakes{Node: gone, Shown: shown("pv-1")}, want: v1alpha1.NodeFenceSpec{Unseen: true, LostSince: at(noon), Volumes: shown("pv-1")}},
		"of a gone node in its last boot":        {n: Namesakes{Node: gone, Last: Deletion{Boot: ready.Boot}, Shown: shown("pv-1")}, want: v1alpha1.NodeFenceSpec{Boot: ready.Boot, LostSince: at(noon), Volumes: shown("pv-1")}},
		"of a gone node without volumes":         {n: Namesakes{Node: gone, Last: Deletion{Boot: ready.Boot}}},
		"of a gone node whose volumes are off":   {n: Namesakes{Node: gone, Shown: shown("pv-1")}, policy: off},
		"of a boot that has a record":            {n: Namesakes{Node: ready, Records: []Record{recordOf("m1", "b1")}}},
		"of a kubelet that has not reported yet": {n: Namesakes{Node: Node{Name: "node-1", Exists: true}}},
		"of volumes that have a record":          {n: Namesakes{Node: gone, Shown: shown("pv-1"), Records: []Record{toBeFenced(recordOf("m1", "b1", "pv-1"))}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := allFenced()
			if c.policy != nil {
				c.policy(&p)
			}
			f, missing := c.n.Missing(noon, p)
			if !missing {
				must.True(t, c.want.LostSince == nil && c.want.NodeUID == "", "no record is missing")
				return
			}
			c.want.NodeName = "node-1"
			must.Equal(t, f.Spec, c.want)
			must.Equal(t, f.Record, RecordName("node-1", c.want.Boot))
		})
	}
}

// Without UUIDs, a machine that registers again may be another one.
func TestBootsAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		was, is v1alpha1.Boot
		uid     types.UID
		present string // this boot, a later one, or another machine
	}{
		"the same boot":                           {bootOf("m1", "b1"), bootOf("m1", "b1"), "uid-1", "this"},
		"the same boot, recreated":                {bootOf("m1", "b1"), bootOf("m1", "b1"), "uid-2", "this"},
		"the same boot, its UUID in another form": {bootOf("m1", "b1"), bootOf("M1", "b1"), "uid-1", "this"},
		"another boot":                            {bootOf("m1", "b1"), bootOf("m1", "b2"), "uid-1", "later"},
		"another boot, recreated":                 {bootOf("m1", "b1"), bootOf("m1", "b2"), "uid-2", "later"},
		"another machine":                         {bootOf("m1", "b1"), bootOf("m2", "b2"), "uid-2", "another"},
		"another machine of a copied disk":        {bootOf("m1", "b1"), bootOf("m2", "b1"), "uid-2", "another"},
		"no boot ID yet":                          {bootOf("m1", "b1"), bootOf("m1", ""), "uid-1", "another"},
		"no UUIDs, the same boot":                 {bootOf("", "b1"), bootOf("", "b1"), "uid-2", "this"},
		"no UUIDs, another boot of one Node":      {bootOf("", "b1"), bootOf("", "b2"), "uid-1", "later"},
		"no UUIDs, another boot, recreated":       {bootOf("", "b1"), bootOf("", "b2"), "uid-2", "another"},
		"no recorded UUID, another boot":          {bootOf("", "b1"), bootOf("m1", "b2"), "uid-2", "another"},
		"no present UUID, another boot":           {bootOf("m1", "b1"), bootOf("", "b2"), "uid-2", "another"},
		"an unseen boot":                          {v1alpha1.Boot{}, bootOf("m1", "b1"), "uid-1", "another"},
		"an unseen boot, and no UUID":             {v1alpha1.Boot{}, bootOf("", "b1"), "", "another"},
	} {
		t.Run(name, func(t *testing.T) {
			s := v1alpha1.NodeFenceSpec{Boot: c.was, NodeUID: "uid-1"}
			if c.was.BootID == "" {
				s.NodeUID = ""
			}
			n := Node{Name: "node-1", Exists: true, UID: c.uid, Boot: c.is}
			got := map[[2]bool]string{{true, false}: "this", {false, true}: "later", {false, false}: "another"}[[2]bool{isOf(s, n), laterBoot(s, n)}]
			must.Equal(t, got, c.present)
			must.True(t, !isOf(s, Node{Name: "node-1"}) && !laterBoot(s, Node{Name: "node-1"}), "a Node that is gone shows a boot")
		})
	}
	names := []string{RecordName("node-1", bootOf("m1", "b1")), RecordName("node-11", bootOf("m1", "b1")), RecordName("node-1", bootOf("m2", "b1")), RecordName("node-1", bootOf("m1", "b2")), RecordName("node-1", v1alpha1.Boot{})}
	slices.Sort(names)
	must.Equal(t, len(slices.Compact(names)), 5, "names of records %v", names)
}

// While Fairlead was away, the machine may have booted, mounted its volumes by another address, and been cut off.
func TestBootThatWasMissed(t *testing.T) {
	tales(t, healthy, map[string]tale[bool]{
		"its deletion was seen":                       {func(s *story) { s.dropNode() }, false},
		"seen, and Fairlead restarts":                 {func(s *story) { s.dropNode().last = Deletion{} }, false},
		"its deletion was not seen":                   {func(s *story) { s.dropUnseen() }, true},
		"lost, then not seen":                         {func(s *story) { s.lose().look().dropUnseen() }, true},
		"fenced, then not seen":                       {func(s *story) { s.loseTainted().answer().wantHeld(false).dropUnseen() }, true},
		"another machine has its name, then not seen": {func(s *story) { s.replace("machine-2", "192.168.1.2").look().pass(deletedFor) }, true},
	}, func(s *story, held bool) {
		if s.hold().look().answer().wantObjects(fencedOf1).wantHeld(held); held {
			s.want(v1alpha1.NodeFencing, ReasonUnseen, "its addresses are fenced, and its volumes are held nevertheless (pv-1): its Node was deleted while Fairlead did not look, so it may have booted with other addresses. When you know that it is off: "+OverrideCommand(record1, GateAttach)).wantWarning()
			s.act(GateAttach).wantHeld(false)
		}
	})
	t.Run("it was last seen in another boot, which is not fenced by the former addresses", func(t *testing.T) {
		s := healthy(t).hold()
		s.Node.Boot.BootID = "boot-2"
		s.drop().look().wantForgotten().pass(deletedFor).look()
		must.True(t, len(s.rest) == 1 && s.rest[0].Spec.Boot.BootID == "boot-2", "on record are %+v", s.rest)
		must.Equal(t, s.rest[0].Status.Reason, ReasonNoIdentity)
		s.wantObjects().wantHeld(true)
	})
	t.Run("it comes back in another boot, whose kubelet may hide old mounts", func(t *testing.T) {
		s := healthy(t).dropUnseen().hold().look().answer().wantHeld(true).register("boot-2").look().wantHeld(true)
		s.pass(endsWithin).look().wantHeld(false)
	})
}

// The volumes of an unseen boot are held until a person says that it is off: its addresses are unknown.
func TestVolumesOfBootThatNobodySawAreHeld(t *testing.T) {
	s := &story{T: t, Facts: Facts{Now: noon, Node: Node{Name: "node-1"}, Policy: allFenced()}, forgotten: true}
	s.hold(held("pv-1", rbd, "a")).look().pass(deletedFor).look()
	must.Equal(t, len(s.rest), 1, "records")
	r := s.rest[0]
	must.Equal(t, r.Status.Message, "not fenced: "+rbd+" of a: no address of the node was recorded while it was healthy; fence it by hand and release its volumes: "+OverrideCommand(r.Name, GateAttach))
	s.hold().look().wantHeld(true) // Kubernetes has detached it by force
	s.register("boot-1").look().wantHeld(true).follow()
	must.True(t, s.Record != r.Name && len(s.rest) == 1, "a new machine passes for the unseen one")
	s.rest[0].Request = Request{Gate: GateAttach, By: "alice", Reason: "it is off", At: s.Now}
	s.look().wantHeld(false)
	must.Equal(t, len(s.rest), 0, "records that are left of it")
}
