package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func pv(name, driver, handle, clusterID string, modes ...string) Volume {
	return Volume{Name: name, Driver: driver, Handle: handle, ClusterID: clusterID, AccessModes: modes}
}

func held(name, driver, clusterID string) v1alpha1.HeldVolume {
	return v1alpha1.HeldVolume{PersistentVolume: name, Driver: driver, ClusterID: clusterID}
}

func names(volumes []v1alpha1.HeldVolume) string { return strings.Join(VolumeNames(volumes), " ") }

func TestHolding(t *testing.T) {
	volumes := []Volume{
		pv("static", rbd, "static-image", "a"), // made by hand: no access modes that say much, no annotations
		pv("rwo", rbd, "0001-a", "a", "ReadWriteOnce"),
		pv("rwop", rbd, "0001-p", "a", "ReadWriteOncePod"),
		pv("rwx", cephFS, "0001-x", "a", "ReadWriteMany"),
		pv("rox", cephFS, "0001-r", "a", "ReadOnlyMany"),
		pv("rwo-and-rox", rbd, "0001-b", "a", "ReadWriteOnce", "ReadOnlyMany"),
		pv("caret", rbd, "a^b", "a", "ReadWriteOnce"),
		pv("elsewhere", "ebs.csi.aws.com", "vol-1", "", "ReadWriteOnce"),
		{Name: "nfs", AccessModes: []string{"ReadWriteMany"}}, // not a CSI volume
		{Name: "local"},
	}
	recorded := []v1alpha1.HeldVolume{{PersistentVolume: "deleted", Driver: rbd, VolumeHandle: "0001-d", ClusterID: "a"},
		{PersistentVolume: "rwo", Driver: rbd, VolumeHandle: "0001-before", ClusterID: "a"}}
	protected := func(driver string) bool { return driver == rbd || driver == cephFS }
	for name, test := range map[string]struct {
		use  Use
		want string
	}{
		"nothing":                              {Use{}, ""},
		"attached":                             {Use{Attached: []string{"rwo"}}, "rwo"},
		"in use":                               {Use{InUse: []string{UniqueName(rbd, "0001-a")}}, "rwo"},
		"both, once":                           {Use{Attached: []string{"rwo", "rwo"}, InUse: []string{UniqueName(rbd, "0001-a"), UniqueName(rbd, "0001-a")}}, "rwo"},
		"one here, one there":                  {Use{Attached: []string{"rwop"}, InUse: []string{UniqueName(rbd, "0001-a")}}, "rwo rwop"},
		"static":                               {Use{InUse: []string{UniqueName(rbd, "static-image")}}, "static"},
		"shared":                               {Use{Attached: []string{"rwx"}}, "rwx"},
		"read only":                            {Use{Attached: []string{"rox"}}, ""},
		"read only too":                        {Use{Attached: []string{"rwo-and-rox"}}, "rwo-and-rox"},
		"a handle with a caret":                {Use{InUse: []string{UniqueName(rbd, "a^b")}}, "caret"},
		"half of a handle":                     {Use{InUse: []string{UniqueName(rbd, "a")}}, "a"},
		"a handle that begins alike":           {Use{InUse: []string{UniqueName(rbd, "0001-ab")}}, "0001-ab"},
		"the handle of another driver":         {Use{InUse: []string{UniqueName(cephFS, "0001-a")}}, "0001-a"},
		"another driver's":                     {Use{Attached: []string{"elsewhere"}, InUse: []string{UniqueName("ebs.csi.aws.com", "vol-1")}}, ""},
		"not CSI":                              {Use{Attached: []string{"nfs", "local"}, InUse: []string{"kubernetes.io/nfs/nfs", "kubernetes.io/csi/", "kubernetes.io/csi/^", ""}}, ""},
		"its PersistentVolume is gone":         {Use{Attached: []string{"gone"}, InUse: []string{UniqueName(rbd, "gone")}}, "gone"},
		"and on record, attached":              {Use{Attached: []string{"deleted"}}, "deleted"},
		"and on record, its name used again":   {Use{Attached: []string{"rwo"}, InUse: []string{UniqueName(rbd, "0001-before")}}, "rwo rwo"},
		"and on record, in use":                {Use{InUse: []string{UniqueName(rbd, "0001-d")}}, "deleted"},
		"a volume is not named by its handle":  {Use{Attached: []string{"0001-a"}}, ""},
		"nor does its name look like a handle": {Use{Attached: []string{rbd + "^0001-b"}}, ""},
	} {
		t.Run(name, func(t *testing.T) { must.Equal(t, names(Holding(test.use, volumes, recorded, protected)), test.want) })
	}
}

func TestParseUniqueName(t *testing.T) {
	for text, want := range map[string][2]string{
		"kubernetes.io/csi/d.example.com^handle": {"d.example.com", "handle"},
		"kubernetes.io/csi/d^a^b^":               {"d", "a^b^"},
		"kubernetes.io/csi/d^^":                  {"d", "^"},
		"kubernetes.io/csi/d^/a/b c":             {"d", "/a/b c"},
		"kubernetes.io/csi/d^":                   {},
		"kubernetes.io/csi/^h":                   {},
		"kubernetes.io/csi/d":                    {},
		"kubernetes.io/csi/":                     {},
		"kubernetes.io/rbd/pool:image":           {},
		"d^h":                                    {},
		"":                                       {},
	} {
		driver, handle, ok := ParseUniqueName(text)
		if !ok {
			driver, handle = "", ""
		}
		must.Equal(t, [2]string{driver, handle}, want, "%q", text)
		must.Equal(t, ok, want != [2]string{}, "%q", text)
	}
}

func TestVolumeIsHeldAs(t *testing.T) {
	shared := v1alpha1.HeldVolume{PersistentVolume: "v", Driver: cephFS, ClusterID: "a", Shared: true}
	shared.VolumeHandle = "h"
	must.Equal(t, pv("v", cephFS, "h", "a", "ReadWriteOnce", "ReadWriteMany").Held(), shared)
	must.Equal(t, pv("v", rbd, "h", "a").ReadOnly(), false)
}

func TestUnion(t *testing.T) {
	before := []v1alpha1.HeldVolume{held("a", rbd, "old"), held("b", rbd, "a")}
	now := []v1alpha1.HeldVolume{held("c", rbd, "a"), held("a", rbd, "new")}
	must.Equal(t, union(before, now), []v1alpha1.HeldVolume{held("a", rbd, "new"), held("b", rbd, "a"), held("c", rbd, "a")})
	must.Equal(t, now[0].PersistentVolume, "c", "unchanged input")
}

// A handle, and a driver, may be anything.
func FuzzParseUniqueName(f *testing.F) {
	for _, text := range []string{"kubernetes.io/csi/d.example.com^h", "kubernetes.io/csi/d^a^b", "kubernetes.io/csi/^", "kubernetes.io/nfs/x", "\xff^"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		driver, handle, ok := ParseUniqueName(text)
		if ok && (driver == "" || handle == "" || strings.Contains(driver, "^") || UniqueName(driver, handle) != text) {
			t.Fatalf("%q is %q and %q", text, driver, handle)
		}
		if d, h, ok := ParseUniqueName(UniqueName("d.example.com", text)); ok != (text != "") || ok && (d != "d.example.com" || h != text) {
			t.Fatalf("%q reads back as %q and %q, %t", text, d, h, ok)
		}
		Holding(Use{Attached: []string{text}, InUse: []string{text}}, []Volume{{Name: text}, {Name: "v", Driver: driver, Handle: handle}}, nil, func(string) bool { return true })
	})
}

// From a tainted node Kubernetes detaches by force, so a volume may have been attached and mounted unseen.
func TestVolumeOfTaintedNodeDoesNotWait(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		s := healthy(t).taint(tainted)
		s.Holding = append(s.Holding, v1alpha1.HeldVolume{PersistentVolume: "pv-2", Driver: rbd, ClusterID: "a", Waiting: true})
		s.look()
		v := s.Status.Volumes[1]
		must.True(t, v.PersistentVolume == "pv-2" && v.Waiting != tainted, "tainted %t: got %+v", tainted, v)
	}
}

// While Fairlead was away, a volume that only waited may have been attached, mounted, and detached by force.
func TestWaitingVolumeCountsAsMountedAfterMissedLoss(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(*story)
		waits   bool
	}{
		"nothing was missed":    {func(*story) {}, true},
		"lost and back, unseen": {func(s *story) { s.Node.ReadyChanged = s.Now }, false},
		"lost, seen, and back":  {func(s *story) { s.lose().look().returnSameBoot() }, false},
		"Node created again":    {func(s *story) { s.Node.Machine.UID = "uid-2" }, false},
		"rebooted, unseen":      {func(s *story) { s.boot("boot-2") }, false},
		"not on record":         {func(s *story) { s.Status.Volumes = s.Status.Volumes[:1]; s.Node.ReadyChanged = s.Now }, false},
		"not on record, seen":   {func(s *story) { s.Status.Volumes = s.Status.Volumes[:1] }, true},
	} {
		s := healthy(t)
		s.Holding = append(s.Holding, v1alpha1.HeldVolume{PersistentVolume: "pv-2", Driver: rbd, ClusterID: "a", Waiting: true})
		s.look().pass(time.Minute).do(c.happens)
		volumes := s.Holding
		volumes[1].Detached = true // the kubelet lists it
		s.hold(volumes...).look()
		v := s.Status.Volumes[1]
		must.True(t, v.Waiting == c.waits && v.Detached != c.waits, "%s: got %+v", name, v)
	}
}

// A restore makes a PersistentVolume of another name for the same image.
func TestVolumeOfOtherNameIsHeldByItsHandle(t *testing.T) {
	image := pv("pv-1", rbd, "h-1", "a", "ReadWriteOnce")
	restored, elsewhere, older := image, image, image
	restored.Name, elsewhere.Name, elsewhere.Driver, older.Handle = "restored", "elsewhere", other, "h-2"
	s := healthy(t).hold(image.Held()).look().dropNode().hold().look() // requested, not confirmed
	sakes := Namesakes{Node: s.Node, Records: []Record{{Name: "node-1", Status: s.Status}}}
	for v, held := range map[*Volume]bool{&image: true, &restored: true, &older: true, &elsewhere: false} {
		must.Equal(t, sakes.recorded(v.Held()), held, "%s %s on record", v.Name, v.Handle)
		holders := sakes.Holders(*v)
		must.True(t, len(holders) == 1 && (holders[0].Record != "") == held, "%s: holders are %+v", v.Name, holders)
	}
	back := Holder{Node: readyNamed("node-1", "boot-1"), Record: "node-1", Status: s.Status}
	back.Status.Phase, back.Status.Volumes[0].Until = v1alpha1.NodeHealthy, at(noon)
	must.True(t, Attach(restored, "node-2", []Holder{back}, s.Policy) != nil, "the restored volume is not held though its image may be mounted")
}

// Both names stay on record: the API server's policies know volumes by name.
func TestAllNamesOfVolumeAreOnRecord(t *testing.T) {
	old, again := held("pv-1", rbd, "a"), held("pv-2", rbd, "a")
	recreated := old
	old.VolumeHandle, again.VolumeHandle, recreated.VolumeHandle = "h-1", "h-1", "h-2"
	must.Equal(t, union([]v1alpha1.HeldVolume{old}, []v1alpha1.HeldVolume{again, recreated}), []v1alpha1.HeldVolume{old, recreated, again})
	must.Equal(t, union([]v1alpha1.HeldVolume{held("pv-1", rbd, "a")}, []v1alpha1.HeldVolume{old}), []v1alpha1.HeldVolume{old}, "a record of an older version")
}
