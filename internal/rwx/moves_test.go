package rwx

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestMoves(t *testing.T) {
	x, y, z, both := addresses("10.0.0.1"), addresses("10.0.0.2"), addresses("10.0.0.3"), addresses("10.0.0.1", "10.0.0.2")
	run := func(boot, containers string) Run { return Run{boot, containers} }
	web := map[string]Run{"web": run("boot-1", "one")}
	first := Moves{}.Next(x, nil)
	moved := first.Next(y, web)
	for name, c := range map[string]struct {
		moves     Moves
		published []netip.Addr
		run       Run
		want      []netip.Addr
		unsure    bool
	}{
		"the server has not moved":                {first, x, run("boot-1", "one"), nil, false},
		"it has":                                  {moved, y, run("boot-1", "one"), x, false},
		"it is down in between":                   {first.Next(nil, nil).Next(y, web), y, run("boot-1", "one"), x, false},
		"it is down now":                          {moved, nil, run("boot-1", "one"), nil, false},
		"it is back":                              {moved.Next(x, web), x, run("boot-1", "one"), nil, false},
		"it is back and away again":               {moved.Next(x, web).Next(z, web), z, run("boot-1", "one"), x, false},
		"it moved twice":                          {moved.Next(z, web), z, run("boot-1", "one"), x, false},
		"the node has rebooted since":             {moved, y, run("boot-2", "two"), nil, false},
		"its containers have started again since": {moved, y, run("boot-1", "two"), x, true},
		"they have, and it moved on":              {moved.Next(z, map[string]Run{"web": run("boot-1", "two")}), z, run("boot-1", "two"), both, false},
		"the boot is not known":                   {moved, y, run("", "one"), nil, false},
		"the node has rebooted, and it moved on":  {moved.Next(z, map[string]Run{"web": run("boot-2", "two")}), z, run("boot-2", "two"), y, false},
		"the pod was not listed":                  {first.Next(y, map[string]Run{"db": run("boot-1", "one")}), y, run("boot-1", "one"), nil, false},
		"it has another address beside":           {first.Next(both, web), both, run("boot-1", "one"), nil, false},
		"and keeps that":                          {first.Next(both, web).Next(y, web), y, run("boot-1", "one"), nil, false}, // which of both was mounted is not known
		"and moves then":                          {first.Next(both, web).Next(y, web).Next(z, web), z, run("boot-1", "one"), both, false},
		"and moves then, and has one of the both": {first.Next(both, web).Next(y, web).Next(z, web).Next(x, web), x, run("boot-1", "one"), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.moves.String()
			moves, err := ParseMoves(text)
			must.Equal(t, err, nil)
			must.Equal(t, moves.String(), text)
			from, unsure := moves.From("web", c.run, c.published)
			must.Equal(t, from, c.want)
			must.Equal(t, unsure, c.unsure)
		})
	}
}

func TestMovedAwayNeedsAMoveInEachFamily(t *testing.T) {
	v4, v6, other4, other6 := addresses("10.0.0.1"), addresses("fd00::1"), addresses("10.0.0.2"), addresses("fd00::2")
	stays := func(a []netip.Addr) Family { return Family{a, Moves{}.Next(a, nil)} }
	moves := func(a, b []netip.Addr) Family {
		return Family{b, Moves{}.Next(a, nil).Next(b, map[string]Run{"web": {"boot-1", "one"}})}
	}
	gone := func(a []netip.Addr) Family { return Family{nil, Moves{}.Next(a, nil)} }
	for name, c := range map[string]struct {
		families []Family
		want     ServerMove
	}{
		"none":                 {nil, ServerMove{}},
		"one":                  {[]Family{moves(v4, other4)}, ServerMove{"10.0.0.1", "10.0.0.2", false}},
		"never published":      {[]Family{moves(v4, other4), {}}, ServerMove{"10.0.0.1", "10.0.0.2", false}},
		"both":                 {[]Family{moves(v4, other4), moves(v6, other6)}, ServerMove{"10.0.0.1, fd00::1", "10.0.0.2, fd00::2", false}},
		"one stays":            {[]Family{moves(v4, other4), stays(v6)}, ServerMove{}},
		"one is not on record": {[]Family{moves(v4, other4), {Published: v6}}, ServerMove{}},
		"one is down":          {[]Family{moves(v4, other4), gone(v6)}, ServerMove{}},
	} {
		t.Run(name, func(t *testing.T) { must.Equal(t, MovedAway(c.families, "web", Run{"boot-1", "one"}), c.want) })
	}
}

func TestListOfPodsThatAreLeftBehindIsBounded(t *testing.T) {
	started := map[string]Run{}
	for i := range 4000 {
		started[fmt.Sprintf("%08d-0000-0000-0000-000000000000", i)] = Run{"00000000-0000-0000-0000-000000000000", "0123456789abcdef"}
	}
	moves := Moves{}.Next(addresses("fd00:1111:2222:3333:4444:5555:6666:7777"), nil).Next(addresses("10.0.0.2"), started)
	must.True(t, len(moves.Left) == 1000 && len(moves.String()) <= mostBytes, "%d pods in %d bytes", len(moves.Left), len(moves.String()))
}

// Servers move in any way, pods come, go and mount again after reboots, and Fairlead crashes between its list of pods and its write.
// A pod whose server is published at the address that it has mounted is never taken for dead, and each other one is that had started when the server moved.
func TestMountsDieWithTheAddressOfTheirServer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type pod struct {
			address    netip.Addr // zero: it has yet to mount
			run, shown Run        // shown is by its status, which may be of before a reboot; the Node shows the boot
			stale      bool       // when the server moved last
		}
		var moves Moves
		var published []netip.Addr
		pods, uids, runs, boots := map[string]*pod{}, 0, 0, 1
		boot := func() string { return fmt.Sprint("boot-", boots) }
		newRun := func() Run { runs++; return Run{boot(), fmt.Sprint("run-", runs)} }
		onPod := func(do func(uid string, p *pod)) {
			if len(pods) > 0 {
				uid := rapid.SampledFrom(slices.Sorted(maps.Keys(pods))).Draw(t, "pod")
				do(uid, pods[uid])
			}
		}
		mount := func(_ string, p *pod) {
			if len(published) > 0 && !p.address.IsValid() {
				p.address, p.run = rapid.SampledFrom(published).Draw(t, "address"), newRun()
			}
		}
		report := func(_ string, p *pod) { p.shown = p.run }
		t.Repeat(map[string]func(*rapid.T){
			"pod comes": func(*rapid.T) {
				uids++
				p := &pod{run: Run{Boot: boot()}, shown: Run{Boot: boot()}}
				if pods[fmt.Sprint("pod-", uids)] = p; rapid.Bool().Draw(t, "it mounts at once") {
					mount("", p)
					report("", p)
				}
			},
			"pod goes":   func(*rapid.T) { onPod(func(uid string, _ *pod) { delete(pods, uid) }) },
			"pod mounts": func(*rapid.T) { onPod(mount) },
			"container fails": func(*rapid.T) {
				onPod(func(_ string, p *pod) {
					if p.address.IsValid() {
						p.run = newRun()
					}
				})
			},
			"reboot": func(*rapid.T) {
				boots++
				for _, p := range pods {
					p.address, p.run, p.shown.Boot = netip.Addr{}, Run{Boot: boot()}, boot()
				}
			},
			"kubelet reports": func(*rapid.T) { onPod(report) },
			"servers change": func(t *rapid.T) {
				next := rapid.SliceOfNDistinct(rapid.SampledFrom(addresses("10.0.0.1", "10.0.0.2", "10.0.0.3")), 0, 2, rapid.ID[netip.Addr]).Draw(t, "published")
				started := map[string]Run{}
				for uid, p := range pods {
					if p.stale {
						p.shown = p.run // a kubelet reports within seconds, and a server takes longer to move twice
					}
					started[uid], p.stale = p.shown, p.shown != p.run
				}
				if written := moves.Next(next, started); rapid.IntRange(0, 3).Draw(t, "crash") > 0 {
					moves, published = written, next
				}
			},
			"": func(t *rapid.T) {
				for uid, p := range pods {
					if !p.address.IsValid() || p.shown != p.run {
						continue // it is judged once its kubelet has reported
					}
					from, unsure := moves.From(uid, p.run, published)
					dead, answers := from != nil && !unsure, slices.Contains(published, p.address)
					must.True(t, !answers || !dead, "%s has mounted %s of %s, and is taken for dead: %+v", uid, p.address, published, moves)
					left, known := moves.Left[uid]
					mayAnswer := len(published) == 0 || known && left.Containers == "" /* had not started */ || shareAddress(moves.Addresses, []netip.Addr{p.address}) || shareAddress(left.Addresses, published)
					must.True(t, answers || from != nil || mayAnswer, "%s has mounted %s, published is %s, and nothing shows it: %+v", uid, p.address, published, moves)
				}
			},
		})
	})
}

// The annotation can be edited.
func FuzzParseMoves(f *testing.F) {
	for _, text := range []string{"", "{}", "null", `{"addresses":["10.0.0.1"],"left":{"uid":{"addresses":["10.0.0.1"],"boot":"b"}}}`, `{"addresses":[""]}`, `{"addresses":["x"]}`, "["} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMoves(text)
		if err != nil {
			must.True(t, errors.Is(err, errNotMoves), "%q: %v", text, err)
			return
		}
		again, err := ParseMoves(m.String())
		must.True(t, err == nil && again.String() == m.String(), "%q reads back as %q, %v", m, again, err)
		_, _ = m.Next(addresses("10.0.0.9"), map[string]Run{"uid": {"b", "c"}}).From("uid", Run{"b", "c"}, addresses("10.0.0.9"))
	})
}
