package fence

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// recordOf a machine of node-1, with what it holds.
func recordOf(name string, ordinal int, uuid string, volumes ...string) Record {
	r := Record{Name: name, Status: v1alpha1.NodeFenceStatus{NodeName: "node-1", Ordinal: ordinal, Incident: "i-" + uuid,
		Node: v1alpha1.MachineIdentity{UID: types.UID("uid-of-" + uuid), BootID: "boot-of-" + uuid, SystemUUID: uuid}}}
	for _, v := range volumes {
		r.Status.Volumes = append(r.Status.Volumes, held(v, rbd, "a"))
	}
	return r
}

// toBeFenced is a record of a machine that a fence was asked for.
func toBeFenced(r Record) Record {
	r.Status.Phase = v1alpha1.NodeDrained
	r.Status.Fences = []v1alpha1.Fence{{Name: "f", Incident: r.Status.Incident, Driver: rbd, ClusterID: "a", State: v1alpha1.FenceFenced}}
	return r
}

func knownOff(r Record) Record {
	r.Override = Override{Gate: GateAttach}
	return r
}

func shown(volumes ...string) []v1alpha1.HeldVolume {
	var all []v1alpha1.HeldVolume
	for _, v := range volumes {
		all = append(all, held(v, rbd, "a"))
	}
	return all
}

// Two machines have had one name: volumes and fences belong to one of them.
func TestShownVolumesAreAssignedToMachines(t *testing.T) {
	first, second := recordOf("node-1", 0, "first", "pv-1"), recordOf("node-1-2", 1, "second", "pv-1", "pv-2")
	is := func(uuid string) Node {
		n := readyNamed("node-1", "boot-of-"+uuid)
		n.Machine.UID, n.Machine.SystemUUID = types.UID("uid-of-"+uuid), uuid
		return n
	}
	gone := Node{Name: "node-1"}
	for name, test := range map[string]struct {
		Namesakes
		holding [][]string // of each record
		missing string     // the name of the record to create, and "" where none is
		unseen  []string   // what is of an unseen machine
		holders string     // of pv-3
	}{
		"the second has the name":                      {Namesakes{Node: is("second"), Records: []Record{toBeFenced(first), second}}, [][]string{nil, {"pv-1", "pv-2", "pv-3"}}, "", nil, "node-1-2"},
		"the first has the name again":                 {Namesakes{Node: is("first"), Records: []Record{first, second}}, [][]string{{"pv-1", "pv-2", "pv-3"}, nil}, "", nil, "node-1"},
		"a third has the name":                         {Namesakes{Node: is("third"), Records: []Record{first, second}}, [][]string{nil, {"pv-1", "pv-2", "pv-3"}}, "node-1-4868ebf523", nil, "?"},
		"another machine has the name of the first":    {Namesakes{Node: is("second"), Records: []Record{toBeFenced(first)}}, [][]string{{"pv-1", "pv-2", "pv-3"}}, "node-1-c1e9fb31a8", nil, "?"},
		"no machine has the name":                      {Namesakes{Node: gone, Records: []Record{first, second}}, [][]string{{"pv-1"}, {"pv-1", "pv-2", "pv-3"}}, "", nil, "unseen"},
		"no machine has the name, the first was later": {Namesakes{Node: gone, Records: []Record{recordOf("node-1", 2, "first", "pv-1"), second}}, [][]string{{"pv-1", "pv-3"}, {"pv-1", "pv-2"}}, "", nil, "unseen"},
		"the second is to be fenced":                   {Namesakes{Node: gone, Records: []Record{first, toBeFenced(second)}}, [][]string{{"pv-1"}, {"pv-1", "pv-2"}}, "node-1-58cdeb4dbe", []string{"pv-3"}, "unseen"},
		"the second is known to be off":                {Namesakes{Node: gone, Records: []Record{first, knownOff(second)}}, [][]string{{"pv-1"}, {"pv-1", "pv-2"}}, "node-1-58cdeb4dbe", []string{"pv-3"}, "unseen"},
		"nothing is known":                             {Namesakes{Node: gone}, nil, "node-1", []string{"pv-1", "pv-2", "pv-3"}, "unseen"},
		"nothing is known, and the name is another's":  {Namesakes{Node: gone, Taken: true}, nil, "node-1-77c47e1159", []string{"pv-1", "pv-2", "pv-3"}, "unseen"},
		"a new node":                                   {Namesakes{Node: is("first")}, nil, "node-1", nil, "?"},
		"a record that was not written yet":            {Namesakes{Node: is("second"), Records: []Record{first, {Name: "node-1-2"}}}, [][]string{nil, {"pv-1", "pv-2", "pv-3"}}, "", nil, "node-1-2"},
		"a record that was not written yet, and goes":  {Namesakes{Node: gone, Records: []Record{toBeFenced(first), {Name: "node-1-2"}}}, [][]string{{"pv-1"}, {"pv-2", "pv-3"}}, "", nil, "unseen"},
	} {
		t.Run(name, func(t *testing.T) {
			test.Shown = shown("pv-1", "pv-2", "pv-3")
			for i := range test.Records {
				must.Equal(t, VolumeNames(test.Of(i).Holding), test.holding[i], "volumes of %s", test.Records[i].Name)
			}
			f, missing := test.Missing(allFenced())
			must.Equal(t, f.Record, test.missing, "missing record")
			must.Equal(t, missing, test.missing != "")
			if missing && !f.Node.Exists {
				must.Equal(t, VolumeNames(f.Holding), test.unseen)
			}
			holders := ""
			for _, h := range test.Holders(Volume{Name: "pv-3", Driver: rbd, ClusterID: "a"}) {
				switch {
				case h.Record != "":
					holders += h.Record
				case h.Node.Exists:
					holders += "?"
				default:
					holders += "unseen"
				}
			}
			must.Equal(t, holders, test.holders, "holders of pv-3")
		})
	}
}

// The volumes of an unseen machine are held: its addresses are unknown, so it is not fenced.
func TestVolumesOfUnseenMachineAreHeld(t *testing.T) {
	s := &story{T: t, Facts: Facts{Now: noon, Record: "node-1-2", Node: Node{Name: "node-1"}, Policy: allFenced(), Holding: shown("pv-1")}}
	s.look().pass(deletedFor).look().want(v1alpha1.NodeFencing, ReasonNoIdentity, "not fenced: "+rbd+" of a: no address of the node was recorded while it was healthy; fence it by hand and release its volumes: kubectl annotate --overwrite nodefence node-1-2 'fairlead.io/override-gate=attach: <why>'")
	must.True(t, s.Status.Node.UID == unknownMachine && s.Status.Gone && s.Status.NodeName == "node-1", "got %+v", s.Status)
	s.wantHeld(true)
	sakes := Namesakes{Node: readyNamed("node-1", "boot-2"), Records: []Record{{Name: "node-1-2", Status: s.Status}}}
	_, missing := sakes.Missing(s.Policy)
	must.True(t, missing && sakes.present() < 0, "a new machine passes for the unseen one")
	s.override(GateAttach).wantHeld(false).override(GateUnfence).hold().look().wantForgotten()
}

func TestMachineThatReturnsToNameIsNewest(t *testing.T) {
	s := healthy(t)
	sakes := Namesakes{Node: s.Node, Records: []Record{{Name: "node-1", Status: s.Status}, recordOf("node-1-2", 3, "second")}}
	for i, want := range []int{4, 3} {
		f := sakes.Of(i)
		f.Now, f.Policy = s.Now, s.Policy
		must.Equal(t, Next(f).Status.Ordinal, want, f.Record)
	}
}

// Without a UUID, another machine looks like a reboot of the fenced machine.
func TestOtherNodeObjectWithoutUUIDIsOtherMachine(t *testing.T) {
	for name, test := range map[string]struct {
		was, is, uid, boot string
		other              bool
	}{
		"no UUIDs":         {uid: "uid-2", boot: "boot-2", other: true},
		"no recorded UUID": {is: "machine-1", uid: "uid-2", boot: "boot-2", other: true},
		"no present UUID":  {was: "machine-1", uid: "uid-2", boot: "boot-2", other: true},
		"the same Node":    {uid: "uid-1", boot: "boot-2"},
		"the same boot":    {uid: "uid-2", boot: "boot-1"},
		"no boot":          {uid: "uid-2", other: true},
		"the same machine": {was: "machine-1", is: "machine-1", uid: "uid-2", boot: "boot-2"},
		"another machine":  {was: "machine-1", is: "machine-2", uid: "uid-1", boot: "boot-1", other: true},
	} {
		s := fenced(t)
		s.Status.Node.SystemUUID = test.was
		s.Node.Machine = v1alpha1.MachineIdentity{SystemUUID: test.is, UID: types.UID(test.uid), BootID: test.boot}
		_, present := Namesakes{Node: s.Node, Records: []Record{{Name: "node-1", Status: s.Status}}}.Present()
		must.Equal(t, present, !test.other, name)
	}
}
