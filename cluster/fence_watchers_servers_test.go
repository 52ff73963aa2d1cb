package cluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
)

const (
	mdsAt      = `{"fsmap":{"filesystems":[{"mdsmap":{"fs_name":"fs","in":[0],"info":{"gid_1":{"name":"a","rank":0,"state":"up:active","addr":"192.168.9.1:6800/1"}}}}],"standbys":[{"name":"b","rank":-1,"state":"up:standby","addr":"192.168.1.1:6800/1"}]}}`
	managersAt = `[{"name":"x","addrs":"[v2:192.168.9.2:6800/1,v1:192.168.9.2:6801/1]"}]`
)

// All that is asked of fencing is asked before a node is tainted too: who has its
// volumes open, and where Ceph's own servers are, which have no pods if it is external.
func TestFactsOfANodeThatMayBeTainted(t *testing.T) {
	answers := map[string]string{"=i-a": openFrom("192.168.1.7"), "mds stat --format json": mdsAt, "mgr metadata --format json": managersAt}
	runner := &scripted{answers: answers}
	r := fenceWorld{profile: config.FencingProfile{Watchers: config.WatchersCrossCheck}, objects: []client.Object{
		fencedNodeObject("node-1", "192.168.1.1"), recordOf("node-1", "a"), fencedPV("a", rbdDriver, "rook-ceph", image("i-a")),
	}}.reader(t).WithWatchers(NewWatchers(map[string]Runner{"rook-ceph": runner}, time.Now))
	facts := r.FenceFacts(clocktesting.NewFakePassiveClock(fenceNoon))
	for _, answered := range []bool{true, false} {
		f, err := facts(t.Context(), "node-1")
		if err != nil {
			t.Fatal(err)
		}
		if want := answered; (len(f.Watching) == 1 && fmt.Sprint(f.Watching[0].Addresses) == "[192.168.1.7]") != want {
			t.Errorf("watching %v", f.Watching)
		}
		// Not what is on the node itself: it is lost with it. And what was found stays so while nothing else is.
		var at []string
		for _, s := range f.Servers {
			at = append(at, fmt.Sprint(s.Name, s.Addresses))
		}
		if want := []string{"a metadata server or manager of rook-ceph[192.168.9.1 192.168.9.2]"}; !slices.Equal(at, want) {
			t.Errorf("servers %q, want %q", at, want)
		}
		runner.answers = nil
	}
	if !slices.ContainsFunc(runner.asked, func(c string) bool { return strings.HasPrefix(c, "ceph mgr metadata") }) {
		t.Errorf("asked %q", runner.asked)
	}
}

// What of the two is known is of use without the other.
func TestServersOfWhichOneKindIsNotTold(t *testing.T) {
	w := NewWatchers(map[string]Runner{"rook-ceph": &scripted{answers: map[string]string{"mgr metadata --format json": managersAt}}}, time.Now)
	if err := w.askServers(t.Context(), config.FencingProfile{Name: "rook-ceph"}); err == nil {
		t.Error("that MDSs could not be asked for is not told")
	}
	if got := fmt.Sprint(w.serversOf("rook-ceph")); got != "[192.168.9.2]" {
		t.Errorf("got %s", got)
	}
	if got := (*Watchers)(nil).serversOf("rook-ceph"); got != nil {
		t.Errorf("nobody knows %v", got)
	}
}
