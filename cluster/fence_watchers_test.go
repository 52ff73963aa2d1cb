package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/fence"
)

// scripted answers commands by how they end.
type scripted struct {
	answers map[string]string
	asked   []string
}

var errNoAnswer = errors.New("no answer")

func (s *scripted) Run(_ context.Context, program string, args ...string) ([]byte, error) {
	command := strings.Join(append([]string{program}, args...), " ")
	s.asked = append(s.asked, command)
	for end, answer := range s.answers {
		if strings.HasSuffix(command, end) {
			return []byte(answer), nil
		}
	}
	return nil, errNoAnswer
}

func openFrom(addresses ...string) string {
	var all []string
	for i, a := range addresses {
		all = append(all, fmt.Sprintf(`{"address":"%s:0/%d","client":%d,"cookie":1}`, a, i+1, i+1))
	}
	return `{"watchers":[` + strings.Join(all, ",") + `]}`
}

func image(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.VolumeAttributes["pool"], pv.Spec.CSI.VolumeAttributes["imageName"] = "pool", name
	}
}

func recordOf(node string, volumes ...string) *v1alpha1.NodeFence {
	record := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: node}}
	for _, v := range volumes {
		record.Status.Volumes = append(record.Status.Volumes, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbdDriver, ClusterID: "rook-ceph"})
	}
	return record
}

// Only volumes that nobody else has, or had, can tell where the node is; but shared
// ones have many clients, and it should be one of them.
func TestWatchersOfVolumesThatOnlyTheLostNodeHas(t *testing.T) {
	rwx := func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersCrossCheck}, objects: []client.Object{
		fencedNodeObject("node-1", "192.168.1.1"), recordOf("node-1", "mine", "remembered", "theirs"), recordOf("node-3", "theirs"),
		fencedPV("mine", rbdDriver, "rook-ceph", image("i-mine")), attachedAt("mine", rbdDriver, "node-1", fenceNoon),
		fencedPV("remembered", rbdDriver, "rook-ceph", image("i-remembered")),
		fencedPV("both", rbdDriver, "rook-ceph", image("i-both")), attachedAt("both", rbdDriver, "node-1", fenceNoon), attachedAt("both", rbdDriver, "node-2", fenceNoon),
		fencedPV("theirs", rbdDriver, "rook-ceph", image("i-theirs")),
		fencedPV("shared", rbdDriver, "rook-ceph", image("i-shared"), rwx), attachedAt("shared", rbdDriver, "node-1", fenceNoon), attachedAt("shared", rbdDriver, "node-2", fenceNoon),
		fencedPV("nameless", rbdDriver, "rook-ceph"), attachedAt("nameless", rbdDriver, "node-1", fenceNoon),
		fencedPV("external", rbdDriver, "external", image("i-external")), attachedAt("external", rbdDriver, "node-1", fenceNoon),
	}}.reader(t)
	view, err := r.Facts(t.Context(), "node-1", fenceNoon)
	if err != nil {
		t.Fatal(err)
	}
	runner := &scripted{answers: map[string]string{"--image=i-mine": openFrom("192.168.1.1"), "--image=i-remembered": openFrom("192.168.1.1", "192.168.1.9"), "--image=i-shared": openFrom("192.168.1.1", "192.168.1.2")}}
	watching, err := r.Watching(t.Context(), NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now), view)
	if err == nil || !strings.Contains(err.Error(), "nameless") || !errors.Is(err, errOtherCluster) || !strings.Contains(err.Error(), "external") {
		t.Errorf("that two could not be asked for is not told: %v", err)
	}
	var got []string
	for _, w := range watching {
		got = append(got, fmt.Sprint(w.Volume.PersistentVolume, w.Addresses))
		if w.Volume.Shared != (w.Volume.PersistentVolume == "shared") {
			t.Errorf("%s: shared: %t", w.Volume.PersistentVolume, w.Volume.Shared)
		}
	}
	if want := []string{"mine[192.168.1.1]", "remembered[192.168.1.1 192.168.1.9]", "shared[192.168.1.1 192.168.1.2]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if runner.asked = slices.DeleteFunc(runner.asked, func(c string) bool { return !strings.HasPrefix(c, "rbd") }); len(runner.asked) != 3 || runner.asked[0] != "rbd status --format json --pool=pool --image=i-mine" {
		t.Errorf("asked %q", runner.asked)
	}
}

func TestWatchersAreAskedForNoMoreThanSoMany(t *testing.T) {
	var all []fence.Volume
	for i := range 30 {
		all = append(all, fence.Volume{Name: fmt.Sprint("a", i), Driver: rbdDriver, ClusterID: "rook-ceph"})
	}
	all = append(all, fence.Volume{Name: "b", Driver: rbdDriver, ClusterID: "two"})
	some := spread(all, maxWatched)
	if len(some) != maxWatched || some[1].Name != "b" {
		t.Fatalf("got %v", some)
	}
	if some = spread(all[:2], maxWatched); len(some) != 2 {
		t.Fatalf("got %v", some)
	}
}

// Who does not answer is not asked again at once, and it is an error, not nobody.
func TestAStorageSystemThatDoesNotAnswerIsLeftAloneForAWhile(t *testing.T) {
	now := fenceNoon
	runner := &scripted{}
	w := NewWatchers(map[string]Runner{"rook-ceph": runner}, func() time.Time { return now })
	p := config.FencingProfile{Name: "rook-ceph"}
	volume := FenceVolume(fencedPV("a", rbdDriver, "rook-ceph", image("i")))
	for i, want := range []int{1, 1, 2} {
		found, err := w.addresses(t.Context(), p, []fence.Volume{volume})
		if err == nil || len(found) != 0 || len(runner.asked) != want {
			t.Fatalf("look %d: got %v, %v, asked %d times", i, found, err, len(runner.asked))
		}
		if i > 0 {
			now = now.Add(time.Minute)
		}
	}
}

func TestClientsOfADirectory(t *testing.T) {
	stat := `{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"fs","in":[0],"info":{"gid_1":{"name":"a","rank":0,"state":"up:active","addr":"192.168.9.1:6800/1"}}}}],"standbys":[]}}`
	clients := `[{"id":7,"inst":"client.7 192.168.1.1:0/77","client_metadata":{"root":"/volumes/v"}},{"id":8,"inst":"client.8 192.168.1.8:0/88","client_metadata":{"root":"/volumes/other"}}]`
	runner := &scripted{answers: map[string]string{"mds stat --format json": stat, "client ls --format json": clients}}
	w := NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now)
	directory := func(name, at string) fence.Volume {
		return FenceVolume(fencedPV(name, cephfsDriver, "rook-ceph", func(pv *corev1.PersistentVolume) {
			pv.Spec.CSI.VolumeAttributes["fsName"], pv.Spec.CSI.VolumeAttributes["subvolumePath"] = "fs", at
		}))
	}
	found, err := w.addresses(t.Context(), config.FencingProfile{Name: "rook-ceph"}, []fence.Volume{directory("v", "/volumes/v"), directory("w", "/volumes/w")})
	if err != nil || fmt.Sprint(found["v"]) != "[192.168.1.1]" || len(found["w"]) != 0 || len(runner.asked) != 2 {
		t.Fatalf("got %v, %v, asked %q", found, err, runner.asked)
	}
}

// Any watcher may be anybody's: only where all of the node's own volumes say the
// same one address is it the node's.
func TestWatchersAsTheSource(t *testing.T) {
	longAgo := fenceNoon.Add(-time.Hour)
	for name, test := range map[string]struct {
		answers  map[string]string
		attached time.Time
		want     string
	}{
		"one address":                  {map[string]string{"=i-a": openFrom("192.168.20.1"), "=i-b": openFrom("192.168.20.1")}, longAgo, "Watchers 192.168.20.1/32"},
		"two volumes, two addresses":   {map[string]string{"=i-a": openFrom("192.168.20.1"), "=i-b": openFrom("192.168.20.2")}, longAgo, "the node's volumes are open from 2 addresses"},
		"two watchers of one volume":   {map[string]string{"=i-a": openFrom("192.168.20.1", "192.168.20.2"), "=i-b": openFrom("192.168.20.1")}, longAgo, "volume a is open from 2 addresses"},
		"one of them is open to none":  {map[string]string{"=i-a": openFrom("192.168.20.1"), "=i-b": openFrom()}, longAgo, "volume b is open from 0 addresses"},
		"one can't be asked for":       {map[string]string{"=i-a": openFrom("192.168.20.1")}, longAgo, "watchers could not be asked"},
		"only just attached":           {map[string]string{"=i-a": openFrom("192.168.20.1"), "=i-b": openFrom("192.168.20.1")}, fenceNoon.Add(-time.Second), "watchers tell nothing yet"},
		"IPv6, not cut, and a /128":    {map[string]string{"=i-a": openFrom("[fd00::1:0]"), "=i-b": openFrom("[fd00::1:0]")}, longAgo, "Watchers fd00::1:0/128"},
		"an answer that is not Ceph's": {map[string]string{"=i-a": "{}", "=i-b": "{}"}, longAgo, "watchers could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			runner := &scripted{answers: test.answers}
			r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersSource}, objects: []client.Object{
				fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7")),
				fencedPV("a", rbdDriver, "rook-ceph", image("i-a")), attachedAt("a", rbdDriver, "node-1", test.attached),
				fencedPV("b", rbdDriver, "rook-ceph", image("i-b")), attachedAt("b", rbdDriver, "node-1", test.attached),
			}}.reader(t).WithWatchers(NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now))
			for range 2 {
				view, err := r.Facts(t.Context(), "node-1", fenceNoon)
				if err != nil {
					t.Fatal(err)
				}
				got := written(view.Facts.Ledger)
				if len(got) != 1 || !strings.Contains(got[0], test.want) || strings.Contains(got[0], "problem") == strings.HasPrefix(test.want, "Watchers") {
					t.Fatalf("got %q, want %q", got, test.want)
				}
			}
			if len(runner.asked) > 2 {
				t.Errorf("asked again at once: %q", runner.asked)
			}
		})
	}
}

func TestWatchersThatCrossCheckAreNoSource(t *testing.T) {
	runner := &scripted{}
	r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersCrossCheck, Addresses: config.AddressesNode}, objects: append(used(rbdDriver, "rook-ceph"),
		fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1"))}.reader(t).WithWatchers(NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now))
	view, err := r.Facts(t.Context(), "node-1", fenceNoon)
	if err != nil || len(runner.asked) != 0 || view.Facts.Ledger[0].Addresses[0].Source != fence.SourceNode {
		t.Fatalf("got %v, asked %q (%v)", written(view.Facts.Ledger), runner.asked, err)
	}
}

// The toolbox of one cluster knows nothing of another's clients, and may have an image
// of the same name.
func TestWatchersOfAnotherClusterAreNoSource(t *testing.T) {
	runner := &scripted{answers: map[string]string{"=i-a": openFrom("192.168.20.1")}}
	r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersSource}, objects: []client.Object{
		fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-rbdplugin", "node-1", onNetwork("10.244.1.7")),
		fencedPV("a", rbdDriver, "external", image("i-a")), attachedAt("a", rbdDriver, "node-1", fenceNoon.Add(-time.Hour)),
	}}.reader(t).WithWatchers(NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now))
	view, err := r.Facts(t.Context(), "node-1", fenceNoon)
	if err != nil {
		t.Fatal(err)
	}
	if got := written(view.Facts.Ledger); len(got) != 1 || !strings.Contains(got[0], errOtherCluster.Error()) || len(runner.asked) != 0 {
		t.Fatalf("got %q, asked %q", got, runner.asked)
	}
}

// Autoscaled nodes never get a name twice.
func TestWhatWatchersSaidOfNodesThatAreGoneIsForgotten(t *testing.T) {
	longAgo := fenceNoon.Add(-time.Hour)
	w := NewWatchers(map[string]Runner{"rook-ceph": &scripted{answers: map[string]string{"=i-a": openFrom("192.168.20.1"), "=i-b": openFrom("192.168.20.2")}}}, time.Now)
	r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersSource}, objects: []client.Object{
		fencedNodeObject("node-1", "192.168.1.1"), fencedClient("csi-1", "node-1", onNetwork("10.244.1.7")),
		fencedNodeObject("node-2", "192.168.1.2"), fencedClient("csi-2", "node-2", onNetwork("10.244.1.8")),
		fencedPV("a", rbdDriver, "rook-ceph", image("i-a")), attachedAt("a", rbdDriver, "node-1", longAgo),
		fencedPV("b", rbdDriver, "rook-ceph", image("i-b")), attachedAt("b", rbdDriver, "node-2", longAgo),
	}}.reader(t).WithWatchers(w)
	for _, look := range []struct {
		node string
		at   time.Time
		want int
	}{{"node-1", fenceNoon, 1}, {"node-2", fenceNoon.Add(time.Minute), 2}, {"node-2", fenceNoon.Add(time.Hour), 1}} {
		if _, err := r.Facts(t.Context(), look.node, look.at); err != nil || len(w.remembered) != look.want {
			t.Fatalf("at %s, remembered are %v (%v)", look.at, w.remembered, err)
		}
	}
}
