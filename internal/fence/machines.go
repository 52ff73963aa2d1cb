package fence

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Several machines may have had one node name. Each has its own record, by its system UUID. The cluster shows
// volumes by node name; this file assigns them to machines.

// Record is what is read of a NodeFence.
type Record struct {
	// Name of the object: the node's, or of a later machine of that name the node's and a hash.
	Name     string
	Status   v1alpha1.NodeFenceStatus
	Override Override
}

// NodeName that the machine of a record has or had.
func (r Record) NodeName() string { return cmp.Or(r.Status.NodeName, r.Name) }

// Namesakes are a node name and all machines that have or had it.
type Namesakes struct {
	// Node that has the name now; without one, only the name.
	Node Node
	// Shown are the protected volumes that the cluster shows under the name.
	Shown []v1alpha1.HeldVolume
	// Records of the machines.
	Records []Record
	// Taken: the record of a node of another name has the node's name.
	Taken bool
}

// unknownMachine had the name while Fairlead did not look. It equals no other machine.
const unknownMachine types.UID = "unknown"

// otherMachine tells machines apart by their UUIDs or, without them, by Node object and boot. One machine with two Node
// objects may seem to be two; the opposite mistake would unfence a machine because another one rebooted.
func otherMachine(was, is v1alpha1.MachineIdentity) bool {
	if was.SystemUUID != "" && is.SystemUUID != "" {
		return was.SystemUUID != is.SystemUUID
	}
	sameBoot := was.BootID != "" && was.BootID == is.BootID
	return was.UID != "" && is.UID != "" && was.UID != is.UID && !sameBoot
}

// present is the record of the machine that has the name now; -1 is none. A record without an identity is new and
// belongs to the present machine.
func (n Namesakes) present() int {
	found := -1
	for i, r := range n.Records {
		if !n.Node.Exists || otherMachine(r.Status.Node, n.Node.Machine) {
			continue
		}
		if found < 0 || identified(r)-identified(n.Records[found]) > 0 || identified(r) == identified(n.Records[found]) && r.Status.Ordinal > n.Records[found].Status.Ordinal {
			found = i
		}
	}
	return found
}

func identified(r Record) int {
	if r.Status.Node == (v1alpha1.MachineIdentity{}) {
		return 0
	}
	return 1
}

// newest is the record of the last machine that Fairlead saw with the name; -1 is none.
func (n Namesakes) newest() int {
	found := -1
	for i, r := range n.Records {
		if found < 0 || r.Status.Ordinal > n.Records[found].Status.Ordinal || r.Status.Ordinal == n.Records[found].Status.Ordinal && identified(r) == 0 {
			found = i
		}
	}
	return found
}

// Present is the record of the machine that has the name now.
func (n Namesakes) Present() (Record, bool) {
	if i := n.present(); i >= 0 {
		return n.Records[i], true
	}
	return Record{}, false
}

// Of returns the facts of one machine that follow from its name.
func (n Namesakes) Of(i int) Facts {
	r := n.Records[i]
	f := Facts{Record: r.Name, Status: r.Status, Override: r.Override, Node: Node{Name: n.Node.Name}, Holding: n.holding(i)}
	if n.present() == i {
		f.Node = n.Node
	}
	f.Replaced = n.Node.Exists && !f.Node.Exists
	for o := range n.Records {
		if o != i {
			f.ordinal = max(f.ordinal, n.Records[o].Status.Ordinal+1)
		}
	}
	return f
}

// holding is a machine's part of the shown volumes. The machine that has the name now has all. Without a present
// machine, each volume belongs to the machine that has it on record, else to the newest.
func (n Namesakes) holding(i int) []v1alpha1.HeldVolume {
	present := n.present()
	switch {
	case i == present, n.Node.Exists && present < 0 && i == n.newest():
		return slices.Clone(n.Shown) // before the present machine has a record, the newest may hold them
	case n.Node.Exists:
		return nil
	}
	takes := i == n.newest() && n.Records[i].open()
	return slices.DeleteFunc(slices.Clone(n.Shown), func(v v1alpha1.HeldVolume) bool {
		return !onRecord(n.Records[i], v) && !(takes && !n.recorded(v))
	})
}

// open: the machine may hold more than is on record. After a fence was requested or an operator said that the machine
// is off, it gets no new volumes.
func (r Record) open() bool { return !wasRequested(r.Status) && r.Override.Gate != GateAttach }

func onRecord(r Record, volume v1alpha1.HeldVolume) bool { return find(volume, r.Status.Volumes) >= 0 }

func (n Namesakes) recorded(volume v1alpha1.HeldVolume) bool {
	return slices.ContainsFunc(n.Records, func(r Record) bool { return onRecord(r, volume) })
}

// Missing returns the facts of a machine that lacks a record: the present machine, or an unseen one whose volumes no
// record of the name has. An unseen machine can't be fenced: its volumes are held until an operator says that it is off.
func (n Namesakes) Missing(p Policy) (Facts, bool) {
	f := Facts{Node: n.Node, Holding: slices.Clone(n.Shown)}
	machine := f.Node.Machine
	if !n.Node.Exists {
		machine.UID = unknownMachine
		if i := n.newest(); i >= 0 && n.Records[i].open() {
			return f, false
		}
		f.Holding = slices.DeleteFunc(f.Holding, func(v v1alpha1.HeldVolume) bool { return n.recorded(v) || p.Mode(v.Driver) == ModeOff })
		if len(f.Holding) == 0 {
			return f, false
		}
	} else if n.present() >= 0 {
		return f, false
	}
	for _, r := range n.Records {
		f.ordinal = max(f.ordinal, r.Status.Ordinal+1)
	}
	f.Record = n.Node.Name
	if n.Taken || slices.ContainsFunc(n.Records, func(r Record) bool { return r.Name == n.Node.Name }) {
		f.Record = shortened(n.Node.Name) + "-" + short(n.Node.Name, string(machine.UID), machine.SystemUUID, strconv.Itoa(f.ordinal))
	}
	return f, true
}

// Holders are the machines of the name that may hold a volume. A shown volume that is on no record belongs to no known
// machine: neither fences nor overrides count for it.
func (n Namesakes) Holders(v Volume) []Holder {
	var holders []Holder
	present := n.present()
	for i, r := range n.Records {
		h := Holder{Node: Node{Name: n.Node.Name}, Record: r.Name, Status: r.Status, Override: r.Override, Replaced: n.Node.Exists && i != present}
		if i == present {
			h.Node, h.InUse = n.Node, n.Node.uses(v)
		}
		if i == present || onRecord(r, v.Held()) {
			holders = append(holders, h)
		}
	}
	if n.Node.Exists && present < 0 || !n.Node.Exists && !n.recorded(v.Held()) {
		holders = append(holders, Holder{Node: n.Node, InUse: n.Node.uses(v)})
	}
	return holders
}

// ByName groups all Nodes and records by node name. The records of a name are sorted, the earliest machine first.
func ByName(nodes []Node, records []Record) map[string]*Namesakes {
	all := map[string]*Namesakes{}
	of := func(name string) *Namesakes {
		if all[name] == nil {
			all[name] = &Namesakes{Node: Node{Name: name}}
		}
		return all[name]
	}
	for _, n := range nodes {
		of(n.Name).Node = n
	}
	for _, r := range records {
		n := of(r.NodeName())
		n.Records = append(n.Records, r)
		if r.Name != r.NodeName() {
			of(r.Name).Taken = true
		}
	}
	for _, n := range all {
		slices.SortFunc(n.Records, func(a, b Record) int {
			return cmp.Or(cmp.Compare(a.Status.Ordinal, b.Status.Ordinal), strings.Compare(a.Name, b.Name))
		})
	}
	return all
}

// Machines lists the machines of all records, each with its Node if it still has the name, and Nodes without record.
func Machines(byName map[string]*Namesakes) (all []Other) {
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		n := byName[name]
		for i, r := range n.Records {
			o := Other{Record: r.Name, Node: Node{Name: name}, Status: r.Status, Override: r.Override}
			if n.present() == i {
				o.Node = n.Node
			}
			all = append(all, o)
		}
		if n.Node.Exists && n.present() < 0 {
			all = append(all, Other{Node: n.Node})
		}
	}
	return all
}

// others are all machines except the one that the facts are of.
func (f Facts) others() iter.Seq[*Other] {
	return func(yield func(*Other) bool) {
		for i := range f.Machines {
			o := &f.Machines[i]
			own := o.Record != "" && o.Record == f.Record || o.Record == "" && f.Node.Exists && o.Node.Name == f.Node.Name
			if !own && !yield(o) {
				return
			}
		}
	}
}

// other is the first other machine that matches; nil: none does.
func (f Facts) other(matches func(*Other) bool) *Other {
	for o := range f.others() {
		if matches(o) {
			return o
		}
	}
	return nil
}
