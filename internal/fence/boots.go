package fence

import (
	"cmp"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

// Several machines may have had one node name, and each machine several boots. The cluster shows volumes by node name; this
// file assigns them to boots.

// Record is what is read of a NodeFence.
type Record struct {
	Name string
	UID  string
	Spec v1alpha1.NodeFenceSpec
	// Status is for messages only.
	Status v1alpha1.NodeFenceStatus
	// Request of a person that was not carried out yet.
	Request Request
}

// Namesakes are a node name and the records of all boots that have or had it.
type Namesakes struct {
	// Node that has the name now; without one, only the name.
	Node Node
	// Last is how a Node that is gone was last seen, if its deletion was seen.
	Last Deletion
	// Shown are the protected volumes that the cluster shows under the name.
	Shown []v1alpha1.HeldVolume
	// Torn are those of which the VolumeAttachment was deleted by force, by unique name: Kubernetes detaches a volume only after it
	// has taken it from the Node's status.volumesAttached, which still lists these.
	Torn []string
	// Records of the boots.
	Records []Record
}

// Deletion of a Node: its last state, and when that was seen.
type Deletion struct {
	UID          types.UID
	Boot         v1alpha1.Boot
	ReadyChanged time.Time
	At           time.Time
}

// isOf reports whether a Node shows a boot. A kubelet that starts again may write the system UUID in another form.
func isOf(s v1alpha1.NodeFenceSpec, n Node) bool {
	return n.Exists && s.Boot.BootID != "" && s.Boot.BootID == n.Boot.BootID && (s.Boot.SystemUUID == n.Boot.SystemUUID || s.NodeUID == n.UID)
}

// laterBoot reports whether a Node shows another boot of the machine of a record, which is a later one: a Node is never seen
// again in a boot that is over. Without system UUIDs, only the Node object tells machines apart: a machine that registers again
// may be another one.
func laterBoot(s v1alpha1.NodeFenceSpec, n Node) bool {
	return n.Exists && isAnotherBoot(s, n.UID, n.Boot)
}

func isAnotherBoot(s v1alpha1.NodeFenceSpec, uid types.UID, boot v1alpha1.Boot) bool {
	if boot.BootID == "" || boot.BootID == s.Boot.BootID {
		return false
	}
	if s.Boot.SystemUUID != "" || boot.SystemUUID != "" {
		return s.Boot.SystemUUID == boot.SystemUUID
	}
	return s.NodeUID != "" && s.NodeUID == uid
}

// present is the record of the boot that the Node shows; -1: there is none.
func (n Namesakes) present() int {
	return slices.IndexFunc(n.Records, func(r Record) bool { return isOf(r.Spec, n.Node) })
}

// Present is the record of the boot that the Node shows.
func (n Namesakes) Present() (Record, bool) {
	if i := n.present(); i >= 0 {
		return n.Records[i], true
	}
	return Record{}, false
}

// Of returns the facts of one boot that follow from its name.
func (n Namesakes) Of(i int) Facts {
	r := n.Records[i]
	f := Facts{Record: r.Name, RecordUID: r.UID, Spec: r.Spec, Request: r.Request, Node: n.Node, Later: n.later(r.Spec)}
	switch {
	case n.present() == i:
		f.Holding, f.Torn = slices.Clone(n.Shown), n.Torn
	case n.Node.Exists:
	case n.Last.Boot.BootID != "" && r.Spec.Boot == n.Last.Boot:
		f.Holding = union(n.passOn(r.Spec.Boot), n.Shown)
	default:
		f.Holding = slices.DeleteFunc(slices.Clone(n.Shown), func(v v1alpha1.HeldVolume) bool { return !onRecord(r, v) && (!r.takes() || n.recorded(v)) })
	}
	if !n.Node.Exists {
		f.Deleted = n.Last
	}
	if p, there := n.Present(); there && isSameReady(p.Spec, n.Node) {
		f.PresentSince = p.Spec.ReadySince
	}
	return f
}

// passOn are the volumes of earlier boots of a machine that a boot may have without showing them: its Node is gone, or it was not
// seen whether it is the boot that was missed. They are on the record of the boot before they leave that of the earlier one.
func (n Namesakes) passOn(to v1alpha1.Boot) (volumes []v1alpha1.HeldVolume) {
	for _, r := range n.Records {
		earlier := to.BootID != "" && !r.Spec.Over && r.Spec.Boot != to && r.Spec.Boot.BootID != "" && r.Spec.Boot.SystemUUID == to.SystemUUID
		if earlier && (missed(r.Spec, n.Node) || !n.Node.Exists) {
			volumes = union(volumes, r.Spec.Volumes)
		}
	}
	for i := range volumes {
		volumes[i].Released = false // which a person said of the other boot
	}
	return volumes
}

// missed reports whether no look saw how the boot on record ended: its Node was deleted or recreated meanwhile, and the machine may have
// booted more than once.
func missed(s v1alpha1.NodeFenceSpec, n Node) bool {
	return s.Unseen || n.Exists && !isOf(s, n) && s.NodeUID != "" && s.NodeUID != n.UID
}

// later reports whether a later boot of the machine of a record was seen, and has all volumes on its own record that it may have.
func (n Namesakes) later(s v1alpha1.NodeFenceSpec) bool {
	uid, boot := n.Node.UID, n.Node.Boot
	if !n.Node.Exists {
		uid, boot = n.Last.UID, n.Last.Boot
	}
	if !isAnotherBoot(s, uid, boot) {
		return false
	}
	i := slices.IndexFunc(n.Records, func(r Record) bool { return r.Spec.Boot == boot || isOf(r.Spec, n.Node) })
	if n.Node.Exists && missed(s, n.Node) && i < 0 {
		return false // its record is to begin with the volumes of this one
	}
	return !slices.ContainsFunc(s.Volumes, func(v v1alpha1.HeldVolume) bool {
		may := !n.Node.Exists || find(v, n.Shown) >= 0 && !(i >= 0 && onlyWaits(n.Records[i].Spec, n.Node, v))
		return may && (i < 0 || find(v, n.Records[i].Spec.Volumes) < 0)
	})
}

// takes reports whether a record gets new volumes. A boot without a Node may have more volumes than are on record. After a fence was requested, or a person said that the
// machine is off, it gets no new ones.
func (r Record) takes() bool {
	return !r.Spec.Over && len(r.Spec.Fences) == 0 && !slices.ContainsFunc(r.Spec.Volumes, func(v v1alpha1.HeldVolume) bool { return v.Released })
}

func onRecord(r Record, v v1alpha1.HeldVolume) bool {
	return !r.Spec.Over && find(v, r.Spec.Volumes) >= 0
}

func (n Namesakes) recorded(v v1alpha1.HeldVolume) bool {
	return slices.ContainsFunc(n.Records, func(r Record) bool { return onRecord(r, v) })
}

// Missing returns the facts of a boot that lacks a record: the present one; the last one of a Node that is gone; or one that
// was not seen, whose volumes no record of the name has. An unseen boot can't be fenced: its volumes are held until a
// person says that the machine is off.
func (n Namesakes) Missing(now time.Time, p Policy) (Facts, bool) {
	boot, shown := n.Node.Boot, slices.Clone(n.Shown)
	known := func(r Record) bool { return r.Spec.Boot == boot || isOf(r.Spec, n.Node) }
	switch {
	case n.Node.Exists && boot.BootID == "":
		return Facts{}, false // its kubelet has not reported yet, so nothing is mounted
	case n.Node.Exists:
		passed := n.passOn(boot)
		for i := range passed {
			passed[i].Until = Facts{Now: now}.graceEnds() // as after a return
		}
		shown = union(passed, shown)
	default:
		boot = n.Last.Boot
		if boot.BootID == "" && slices.ContainsFunc(n.Records, Record.takes) {
			return Facts{}, false
		}
		passed := n.passOn(boot)
		shown = slices.DeleteFunc(union(passed, shown), func(v v1alpha1.HeldVolume) bool {
			return find(v, passed) < 0 && n.recorded(v) || p.Mode(v.Driver) == ModeOff
		})
		if len(shown) == 0 {
			return Facts{}, false
		}
	}
	if slices.ContainsFunc(n.Records, known) {
		return Facts{}, false
	}
	f := Facts{
		Record: RecordName(n.Node.Name, boot), Node: n.Node, Holding: shown, Now: now, Policy: p,
		Spec: v1alpha1.NodeFenceSpec{NodeName: n.Node.Name, Boot: boot, Unseen: boot.BootID == "", Volumes: shown},
	}
	if n.Node.Exists {
		f.Spec.NodeUID, f.Spec.ReadyChanged = n.Node.UID, f.readyChanged()
	}
	if !f.working() {
		f.Spec.LostSince = ptr.To(f.now())
	}
	return f, true
}

// RecordName is the name of the NodeFence of a boot.
func RecordName(node string, boot v1alpha1.Boot) string {
	return shortened(node) + "-" + short(node, boot.SystemUUID, boot.BootID)
}

// Holders are the boots of the name that may write to a volume.
func (n Namesakes) Holders(v Volume) []Holder {
	var holders []Holder
	present := n.present()
	for i, r := range n.Records {
		if i == present {
			holders = append(holders, Holder{Node: n.Node, Record: r.Name, Spec: r.Spec, Status: r.Status, Request: r.Request})
		} else if onRecord(r, v.Held()) && (missed(r.Spec, n.Node) || !laterBoot(r.Spec, n.Node)) {
			holders = append(holders, Holder{Node: Node{Name: n.Node.Name}, Replaced: n.Node.Exists, Record: r.Name, Spec: r.Spec, Status: r.Status, Request: r.Request})
		}
	}
	// A shown volume that is on no record belongs to no known boot: neither fences nor acts count for it.
	if n.Node.Exists && present < 0 {
		holders = append(holders, Holder{Node: n.Node})
	} else if !n.Node.Exists && !n.recorded(v.Held()) && find(v.Held(), n.Shown) >= 0 {
		holders = append(holders, Holder{Node: n.Node, Spec: v1alpha1.NodeFenceSpec{Volumes: []v1alpha1.HeldVolume{v.Held()}}})
	}
	return holders
}

// ByName groups all Nodes and records by node name.
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
		n := of(r.Spec.NodeName)
		n.Records = append(n.Records, r)
	}
	for _, n := range all {
		slices.SortFunc(n.Records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	}
	return all
}

// Other is a boot as others see it.
type Other struct {
	// Record is the name of its NodeFence, if it has one.
	Record string
	// Node that shows the boot; without one, only its name.
	Node Node
	Spec v1alpha1.NodeFenceSpec
	// ClientAddresses are those of the client pods on its node.
	ClientAddresses []netip.Addr
}

// Machines lists the boots of all records, each with its Node if that shows it, and Nodes without record.
func Machines(byName map[string]*Namesakes) (all []Other) {
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		n := byName[name]
		present := n.present()
		for i, r := range n.Records {
			o := Other{Record: r.Name, Node: Node{Name: name}, Spec: r.Spec}
			if present == i {
				o.Node = n.Node
			}
			all = append(all, o)
		}
		if n.Node.Exists && present < 0 {
			all = append(all, Other{Node: n.Node})
		}
	}
	return all
}

// others are all boots except the one that the facts are of.
func (f Facts) others() iter.Seq[*Other] {
	return func(yield func(*Other) bool) {
		for i := range f.Machines {
			o := &f.Machines[i]
			if o.Record != "" && o.Record == f.Record || o.Record == "" && f.here() && o.Node.Name == f.Node.Name {
				continue
			}
			if !yield(o) {
				return
			}
		}
	}
}

// other is the first other boot that matches; nil: none does.
func (f Facts) other(matches func(*Other) bool) *Other {
	for o := range f.others() {
		if matches(o) {
			return o
		}
	}
	return nil
}

// nameOf a record, for commands.
func (f Facts) name() string { return cmp.Or(f.Record, f.Node.Name) }
