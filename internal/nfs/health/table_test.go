package health

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/nfs"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var begin = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

func servers(n int) []netip.AddrPort {
	list := make([]netip.AddrPort, n)
	for i := range list {
		list[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i / 250), byte(i%250 + 1)}), nfs.DefaultPort)
	}
	return list
}

// rounds probes all backends once a second. A word has a letter for each backend:
// + succeeds, - fails, . is not probed.
func rounds(t *Table, list []netip.AddrPort, from int, words ...string) (changes []Change) {
	for i, word := range words {
		at := begin.Add(time.Duration(from+i) * time.Second)
		for b, c := range word {
			r := Result{Backend: list[b], At: at}
			switch c {
			case '.':
				continue
			case '-':
				r.Error = "no answer"
			}
			t.Observe(r)
		}
		changes = append(changes, t.SetBackends(at, t.Backends())...)
	}
	return changes
}

// state has a letter for each backend: U, H, F, D.
func state(t *Table, list []netip.AddrPort) string {
	var s strings.Builder
	for _, b := range list {
		s.WriteString(t.Health(b).String()[:1])
	}
	return s.String()
}

func TestHealthAfterResults(t *testing.T) {
	for name, c := range map[string]struct {
		words []string
		want  string
	}{
		"not probed yet":                     {nil, "UUUU"},
		"first success of a new backend":     {[]string{"+++."}, "HHHU"},
		"two failures are not enough":        {[]string{"++++", "-+++", "-+++"}, "HHHH"},
		"three failures in a row":            {[]string{"++++", "-+++", "-+++", "-+++"}, "DHHH"},
		"a success between failures":         {[]string{"++++", "-+++", "-+++", "++++", "-+++", "-+++"}, "HHHH"},
		"one success does not return":        {[]string{"-+++", "-+++", "-+++", "++++"}, "DHHH"},
		"two successes return":               {[]string{"-+++", "-+++", "-+++", "++++", "++++"}, "HHHH"},
		"a failure between successes":        {[]string{"-+++", "-+++", "-+++", "++++", "-+++", "++++"}, "DHHH"},
		"new backend that fails":             {[]string{"-+++", "-+++", "-+++"}, "DHHH"},
		"half may be out":                    {[]string{"--++", "--++", "--++"}, "DDHH"},
		"more than half: none is taken out":  {[]string{"---+", "---+", "---+"}, "FFFH"},
		"all: none is taken out":             {[]string{"----", "----", "----"}, "FFFF"},
		"a third one fails later":            {[]string{"--++", "--++", "--++", "..-+", "..-+", "..-+"}, "DDFH"},
		"the guard ends when one returns":    {[]string{"--++", "--++", "--++", "..-+", "..-+", "..-+", "+.-+", "+.-+"}, "HDDH"},
		"failing ones return as others do":   {[]string{"----", "----", "----", "+++-", "+++-"}, "HHHD"},
		"a failing one has one success only": {[]string{"----", "----", "----", "+---"}, "FFFF"},
	} {
		table, list := NewTable(DefaultSettings()), servers(4)
		table.SetBackends(begin, list)
		rounds(table, list, 1, c.words...)
		must.Equal(t, state(table, list), c.want, "%s", name)
	}
}

func TestChangesSayWhatAndWhy(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(3)
	table.SetBackends(begin, list)
	got := rounds(table, list, 1, "+++", "+-+", "+-+", "+-+", "+++", "+++")
	want := fmt.Sprint([]Change{
		{list[0], nfs.Unknown, nfs.Healthy, ""},
		{list[1], nfs.Unknown, nfs.Healthy, ""},
		{list[2], nfs.Unknown, nfs.Healthy, ""},
		{list[1], nfs.Healthy, nfs.Down, "no answer"},
		{list[1], nfs.Down, nfs.Healthy, ""},
	})
	must.Equal(t, fmt.Sprint(got), want, "got %v", got)
	r, ok := table.Record(list[1])
	if !ok || r.LastError != "no answer" || !r.Since.Equal(begin.Add(6*time.Second)) || !r.LastProbe.Equal(begin.Add(6*time.Second)) || r.Successes != 2 {
		t.Errorf("record: %+v", r)
	}
}

func TestLateAndForeignResultsAreIgnored(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(2)
	table.SetBackends(begin, list[:1])
	rounds(table, list, 5, "+")
	for range 5 {
		news := table.Observe(Result{list[0], begin.Add(time.Second), "late"}) || table.Observe(Result{list[1], begin.Add(time.Hour), "foreign"})
		must.True(t, !news, "they are news")
	}
	if r, _ := table.Record(list[0]); r.Failures != 0 {
		t.Errorf("a late result counts: %+v", r)
	}
	if _, ok := table.Record(list[1]); ok {
		t.Error("a backend of another service has a record")
	}
}

func TestOnlyBackendIsNeverTakenOut(t *testing.T) {
	for _, ejected := range []int{0, 50, 100} {
		s := DefaultSettings()
		s.MaxEjected = ejected
		table, list := NewTable(s), servers(1)
		table.SetBackends(begin, list)
		rounds(table, list, 1, "-", "-", "-", "-")
		if got := state(table, list); got != "F" {
			t.Errorf("%d %%: %s", ejected, got)
		}
		if m := table.Guard().Message(); !strings.Contains(m, "only backend") {
			t.Errorf("message: %q", m)
		}
	}
}

func TestRemainingBackendsAreNotAllOut(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(4)
	table.SetBackends(begin, list)
	rounds(table, list, 1, "--++", "--++", "--++")
	changes := table.SetBackends(begin.Add(time.Hour), list[:2])
	if got := state(table, list[:2]); got != "FF" || len(changes) != 2 {
		t.Errorf("%s, %v", got, changes)
	}
	if g := table.Guard(); !g.Active() || g.Failing != 2 || g.Total != 2 || g.MaxDown != 1 || !strings.Contains(g.Message(), "2 of 2 backends fail") {
		t.Errorf("guard: %+v %s", g, g.Message())
	}
}

// Of remaining backends that are all out, the one that has answered since comes back, at once and for good.
func TestRemainingBackendThatAnsweredComesBack(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(5)
	table.SetBackends(begin, list)
	rounds(table, list, 1, "--+++", "--+++", "--+++", "+-+++")
	must.Equal(t, state(table, list), "DDHHH", "before")
	for call := range 2 {
		table.SetBackends(begin.Add(time.Minute), list[:2])
		must.Equal(t, state(table, list[:2]), "FD", "after call %d", call)
	}
}

func TestRestoredHealthMovesNothing(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(4)
	table.Restore(list[0], nfs.Down, begin, "refused")
	table.Restore(list[1], nfs.Healthy, begin, "")
	if changes := table.SetBackends(begin.Add(time.Hour), list); len(changes) > 0 {
		t.Errorf("changes: %v", changes)
	}
	must.Equal(t, state(table, list), "DHUU")
	if rounds(table, list, 7200, "++++"); state(table, list) != "DHHH" {
		t.Errorf("one success returns a restored backend: %s", state(table, list))
	}
}

func TestGuardOutlivesRestart(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(4)
	for _, b := range list[:3] {
		table.Restore(b, nfs.Failing, begin, "refused")
	}
	table.SetBackends(begin, list)
	if rounds(table, list, 1, "-...", "-...", "-...", "-..."); state(table, list) != "FFFU" {
		t.Errorf("the first to fail again is taken out: %s", state(table, list))
	}
}

func TestKnownBackendsKeepTheirRecords(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(4)
	table.SetBackends(begin, list)
	rounds(table, list, 1, "-+++", "-+++", "-+++")
	table.SetBackends(begin.Add(time.Minute), list[:3])
	must.Equal(t, state(table, list[:3]), "DHH")
}

func TestErrorsOfProbesAreNews(t *testing.T) {
	table, list := NewTable(DefaultSettings()), servers(2)
	table.SetBackends(begin, list)
	for i, c := range []struct {
		text string
		news bool
	}{{"", true}, {"", false}, {"refused", true}, {"refused", false}, {"silent", true}, {"silent", false}, {"", true}, {"", true}, {"", false}} {
		at := begin.Add(time.Duration(i+1) * time.Second)
		must.Equal(t, table.Observe(Result{list[0], at, c.text}), c.news, "result %d", i)
		table.SetBackends(at, list)
	}
}
