package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestHolding(t *testing.T) {
	csi := func(name, driver, handle string, modes ...string) Volume {
		return Volume{Name: name, Driver: driver, Handle: handle, ClusterID: "a", AccessModes: modes}
	}
	volumes := []Volume{
		csi("static", rbd, "static-image"), // made by hand: no access modes that say much, no annotations
		csi("rwo", rbd, "0001-a", "ReadWriteOnce"),
		csi("rwop", rbd, "0001-p", "ReadWriteOncePod"),
		csi("rwx", cephFS, "0001-x", "ReadWriteMany"),
		csi("rox", cephFS, "0001-r", "ReadOnlyMany"),
		csi("rwo-and-rox", rbd, "0001-b", "ReadWriteOnce", "ReadOnlyMany"),
		csi("caret", rbd, "a^b", "ReadWriteOnce"),
		csi("elsewhere", "ebs.csi.aws.com", "vol-1", "ReadWriteOnce"),
		{Name: "nfs", AccessModes: []string{"ReadWriteMany"}}, // not a CSI volume
		{Name: "local"},
	}
	recorded := []v1alpha1.HeldVolume{{PersistentVolume: "deleted", Driver: rbd, VolumeHandle: "0001-d", ClusterID: "a"},
		{PersistentVolume: "rwo", Driver: rbd, VolumeHandle: "0001-before", ClusterID: "a"}}
	protected := func(driver string) bool { return driver == rbd || driver == cephFS }
	inUse := func(driver, handle string) Use { return Use{InUse: []string{UniqueName(driver, handle)}} }
	for name, test := range map[string]struct {
		use  Use
		want string
	}{
		"nothing":                              {Use{}, ""},
		"attached":                             {Use{Attached: []string{"rwo"}}, "rwo"},
		"in use":                               {inUse(rbd, "0001-a"), "rwo"},
		"attached by the node's status":        {Use{AttachedNames: []string{UniqueName(rbd, "0001-a")}}, "rwo"},
		"both, once":                           {Use{Attached: []string{"rwo", "rwo"}, InUse: []string{UniqueName(rbd, "0001-a"), UniqueName(rbd, "0001-a")}}, "rwo"},
		"one here, one there":                  {Use{Attached: []string{"rwop"}, InUse: []string{UniqueName(rbd, "0001-a")}}, "rwo rwop"},
		"static":                               {inUse(rbd, "static-image"), "static"},
		"shared":                               {Use{Attached: []string{"rwx"}}, "rwx"},
		"read only":                            {Use{Attached: []string{"rox"}}, ""},
		"read only too":                        {Use{Attached: []string{"rwo-and-rox"}}, "rwo-and-rox"},
		"a handle with a caret":                {inUse(rbd, "a^b"), "caret"},
		"half of a handle":                     {inUse(rbd, "a"), "a"},
		"a handle that begins alike":           {inUse(rbd, "0001-ab"), "0001-ab"},
		"the handle of another driver":         {inUse(cephFS, "0001-a"), "0001-a"},
		"another driver's":                     {Use{Attached: []string{"elsewhere"}, InUse: []string{UniqueName("ebs.csi.aws.com", "vol-1")}}, ""},
		"not CSI":                              {Use{Attached: []string{"nfs", "local"}, InUse: []string{"kubernetes.io/nfs/nfs", "kubernetes.io/csi/", "kubernetes.io/csi/^", ""}}, ""},
		"its PersistentVolume is gone":         {Use{Attached: []string{"gone"}, InUse: []string{UniqueName(rbd, "gone")}}, "gone"},
		"and on record, attached":              {Use{Attached: []string{"deleted"}}, "deleted"},
		"and on record, its name used again":   {Use{Attached: []string{"rwo"}, InUse: []string{UniqueName(rbd, "0001-before")}}, "rwo rwo"},
		"and on record, in use":                {inUse(rbd, "0001-d"), "deleted"},
		"a volume is not named by its handle":  {Use{Attached: []string{"0001-a"}}, ""},
		"nor does its name look like a handle": {Use{Attached: []string{rbd + "^0001-b"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, strings.Join(VolumeNames(Holding(test.use, volumes, recorded, protected)), " "), test.want)
		})
	}
	shared := v1alpha1.HeldVolume{PersistentVolume: "rwx", Driver: cephFS, VolumeHandle: "0001-x", ClusterID: "a", Shared: true}
	must.Equal(t, Holding(Use{Attached: []string{"rwx"}}, volumes, nil, protected), []v1alpha1.HeldVolume{shared})
}

func TestParseUniqueName(t *testing.T) {
	for text, want := range map[string][2]string{
		"kubernetes.io/csi/d.example.com^handle": {"d.example.com", "handle"}, "kubernetes.io/csi/d^a^b^": {"d", "a^b^"}, "kubernetes.io/csi/d^^": {"d", "^"},
		"kubernetes.io/csi/d^/a/b c": {"d", "/a/b c"}, "kubernetes.io/csi/d^": {}, "kubernetes.io/csi/^h": {}, "kubernetes.io/csi/d": {},
		"kubernetes.io/csi/": {}, "kubernetes.io/rbd/pool:image": {}, "d^h": {}, "": {},
	} {
		t.Run(text, func(t *testing.T) {
			driver, handle, ok := ParseUniqueName(text)
			must.Equal(t, ok, want != [2]string{})
			must.True(t, !ok || [2]string{driver, handle} == want, "got %q and %q", driver, handle)
		})
	}
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

// Both names of an image stay on record, as one volume: the API server's policies know volumes by name.
func TestUnion(t *testing.T) {
	v := func(name, handle, cluster string) v1alpha1.HeldVolume {
		return v1alpha1.HeldVolume{PersistentVolume: name, Driver: rbd, VolumeHandle: handle, ClusterID: cluster}
	}
	before := []v1alpha1.HeldVolume{v("a", "h-a", "old"), v("b", "h-b", "a"), v("pv-1", "h-1", "a")}
	now := []v1alpha1.HeldVolume{v("pv-2", "h-1", "a"), v("pv-1", "h-2", "a"), v("a", "h-a", "new")}
	both := v("pv-2", "h-1", "a")
	both.OtherNames = []string{"pv-1"}
	must.Equal(t, union(before, now), []v1alpha1.HeldVolume{v("a", "h-a", "new"), v("b", "h-b", "a"), v("pv-1", "h-2", "a"), both})
	must.Equal(t, now[0].PersistentVolume, "pv-2", "unchanged input")
}

// A restore makes a PersistentVolume of another name for the same image.
func TestVolumeOfOtherNameIsHeldByItsHandle(t *testing.T) {
	s := healthy(t).drop().hold().look()
	restored, elsewhere, recreated := rwo, rwo, rwo
	restored.Name, elsewhere.Name, elsewhere.Driver, recreated.Handle = "restored", "elsewhere", other, "another image"
	for name, c := range map[string]struct {
		v    Volume
		held bool
	}{"the volume": {rwo, true}, "another name": {restored, true}, "another image of the name": {recreated, false}, "another driver": {elsewhere, false}} {
		t.Run(name, func(t *testing.T) {
			must.Equal(t, Attach(c.v, "node-2", s.namesakes().Holders(c.v), s.Policy) != nil, c.held)
		})
	}
}

// What a working node gives back in the right order leaves its record; what was taken by force stays for a while, since a
// restarted kubelet does not list it.
func TestGrantsOfWorkingNode(t *testing.T) {
	v2 := held("pv-2", rbd, "a")
	waits := func(s *story) {
		s.Holding = append(s.Holding, v2)
		s.Node.InUse = append(s.Node.InUse, UniqueName(rbd, v2.VolumeHandle))
	}
	tales(t, func(t *testing.T) *story { return healthy(t).pass(time.Minute) }, map[string]tale[string]{ // a volume in its grace period has a +
		"nothing":                            {func(*story) {}, "pv-1"},
		"it gets one more":                   {func(s *story) { s.hold(append(s.Holding, v2)...) }, "pv-1 pv-2"},
		"it waits for one more":              {waits, "pv-1"},
		"it gives one back":                  {func(s *story) { s.hold() }, ""},
		"it is lost and back, unseen":        {func(s *story) { s.Node.ReadyChanged = s.Now }, "pv-1+"},
		"it is lost and back, and hides it":  {func(s *story) { s.hold().Node.ReadyChanged = s.Now }, "pv-1+"},
		"it is lost and back, and one waits": {func(s *story) { waits(s); s.Node.ReadyChanged = s.Now }, "pv-1+ pv-2+"},
		"it is lost, seen, and back":         {func(s *story) { s.lose().look().hold().comeBack() }, "pv-1+"},
		"it is recreated":                    {func(s *story) { s.hold().Node.UID = "uid-2" }, "pv-1+"},
		"it is tainted, and hides it":        {func(s *story) { s.taint(true).hold() }, "pv-1"},
		"it is tainted for a while":          {func(s *story) { s.taint(true).hold().look().taint(false) }, "pv-1+"},
		"its grace period ends":              {func(s *story) { s.hold().Node.ReadyChanged = s.Now; s.look().pass(endsWithin) }, ""},
		"its grace period ends, it holds it": {func(s *story) { s.Node.ReadyChanged = s.Now; s.look().pass(endsWithin) }, "pv-1"},
		"and its kubelet was not heard of": {func(s *story) {
			s.hold().Node.ReadyChanged, s.HeardSince = s.Now, time.Time{}
			s.look().pass(time.Hour)
		}, "pv-1+"},
		"and its kubelet was silent in it": {func(s *story) {
			s.hold().Node.ReadyChanged = s.Now
			s.look().pass(endsWithin).HeardSince = s.Now.Add(time.Second - endsWithin)
		}, "pv-1+"},
		"its grace period begins again": {func(s *story) {
			s.Node.ReadyChanged = s.Now
			s.look().pass(4 * time.Minute).Node.ReadyChanged = s.Now
			s.look().pass(4 * time.Minute)
		}, "pv-1+"},
		"it is lost for a moment in its grace": {func(s *story) {
			s.lose().look().hold().comeBack().look().lose().look().comeBack().look().pass(endsWithin - time.Second)
		}, "pv-1+"},
		"its Node is gone for a moment in it": {func(s *story) {
			s.lose().look().hold().comeBack().look().drop().look().register("boot-1").look().pass(endsWithin - time.Second)
		}, "pv-1+"},
		"a person lets its taint go":           {func(s *story) { s.lose().look().request(GateTaint).hold().comeBack() }, "pv-1+"},
		"it has rebooted":                      {func(s *story) { s.boot("boot-2").follow() }, ""},
		"it has rebooted, and mounts it again": {func(s *story) { s.boot("boot-2").follow().hold(held("pv-1", rbd, "a")) }, "pv-1"},
	}, func(s *story, want string) {
		got := ""
		for _, v := range s.look().Spec.Volumes {
			if got += " " + v.PersistentVolume; v.Until != nil {
				got += "+"
			}
		}
		must.Equal(s, strings.TrimSpace(got), want)
	})
	s := healthy(t).hold()
	s.Node.ReadyChanged = s.Now
	s.look().wantAfter(endsWithin).wantHeld(true)
}
