package fence

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type fingerprint [16]byte

// encoder writes a state so that two states of one text have the same future: times count by their order and by whether a period
// is over.
type encoder struct {
	b    []byte
	ages ages
}

func (e *encoder) num(n int)        { e.b = append(e.b, byte(n)) }
func (e *encoder) str(s string)     { e.b = append(append(e.b, s...), 0) }
func (e *encoder) time(t time.Time) { e.num(e.ages.of(t)) }
func (e *encoder) ptr(t *metav1.Time) {
	if t == nil {
		e.num(255)
	} else {
		e.time(t.Time)
	}
}

func (e *encoder) flags(flags ...bool) {
	var n int
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	e.num(n)
}

func (s *small) encode(e *encoder) {
	e.b, e.ages = e.b[:0], s.ages(e.ages.list[:0])
	s.write(e)
	l := s.left
	e.b = append(e.b, l.freezes, l.powers, l.restarts, l.deletions, l.taints, l.acts, l.volumes, l.failures, l.replays, l.slow, l.waits, l.tears, l.times, l.leaders, l.edits, l.crashes, l.gaps, l.unread, l.slowboots, l.secs)
	if saw := s.fairlead.saw; saw != nil {
		e.flags(s.fairlead.todo[:]...)
		saw.write(e)
		for _, f := range saw.fences {
			same := func(now smallFence) bool { return now.UID == f.UID && now.ResourceVersion == f.ResourceVersion }
			e.flags(slices.ContainsFunc(s.fences, same))
		}
		for _, r := range saw.fairlead.records {
			e.flags(slices.ContainsFunc(s.fairlead.records, r.isVersion))
		}
	}
}

func (s *small) write(e *encoder) {
	for i := range s.nodes {
		m, n := &s.machines[i], &s.nodes[i]
		e.flags(m.on, m.reaches, m.waits, m.firstStatus, m.noticed, m.sawTorn, m.forgiven, m.lost)
		e.flags(m.heard.IsZero(), s.now.Sub(m.heard) >= endsWithin) // no other action lets so much time pass
		e.flags(s.blocked[i*boots : (i+1)*boots]...)
		e.num(int(m.boot)<<2 | int(m.mount))
		e.flags(n.exists, n.ready, n.unknown, n.taint, n.inUse, n.torn)
		e.num(int(n.uid)<<4 | int(n.boot))
		e.num(int(n.attached))
		e.time(n.changed)
		e.time(n.gone)
		e.str(s.fairlead.last[i].Boot.BootID)
		e.str(string(s.fairlead.last[i].UID))
		e.time(s.fairlead.last[i].ReadyChanged)
		e.time(s.fairlead.last[i].At)
	}
	e.flags(s.volume)
	e.num(len(s.late))
	for _, l := range s.late {
		e.num(int(l.address))
		e.flags(l.unblock)
	}
	e.time(s.fairlead.started)
	e.time(s.clock())
	e.num(len(s.fences))
	there := map[types.UID]bool{}
	for _, f := range s.fences {
		there[f.UID] = true
		e.str(f.Name)
		e.num(int(f.machine)<<4 | int(f.boot))
		e.flags(f.Unfenced, f.Deleting, f.due, f.relied, f.flipped)
		e.str(f.Message)
	}
	e.num(len(s.fairlead.records))
	for i := range s.fairlead.records {
		s.fairlead.records[i].write(e, there)
	}
}

// write a record. there are the NetworkFences that exist.
func (r *smallRecord) write(e *encoder, there map[types.UID]bool) {
	s := &r.spec
	e.str(r.name)
	e.num(int(r.uid))
	e.str(string(s.NodeUID))
	e.flags(s.Unseen, s.Over, s.Closed, len(s.Withheld) > 0)
	for _, t := range []*metav1.Time{s.LastSeen, s.ReadySince, s.ReadyChanged, s.LostSince, s.Tainted} {
		e.ptr(t)
	}
	e.num(len(s.Identities))
	for _, i := range s.Identities {
		e.num(len(i.Addresses))
		for _, a := range i.Addresses {
			e.str(a.CIDR)
			e.flags(a.Earlier, i.Problem != "")
			e.time(a.LastSeen.Time)
		}
	}
	e.num(len(s.Volumes))
	for _, v := range s.Volumes {
		e.flags(v.Released, v.Unknown)
		e.ptr(v.Until)
	}
	e.num(int(s.Requests))
	e.num(len(s.Fences))
	for _, f := range s.Fences {
		e.str(f.Name)
		e.str(f.State)
		e.flags(f.VolumesReleased, f.Message != "")
		e.num(f.Failures)
		e.flags(there[f.FailedUID], there[f.VoidUID], f.VoidUID != "")
		e.time(f.Since.Time)
		e.ptr(f.FailedAt)
	}
	e.num(len(s.Acts))
	for _, a := range s.Acts {
		e.str(a.Gate)
		e.flags(a.Void)
		e.ptr(a.Of)
	}
	e.str(r.request.Gate)
	if r.request.Gate != "" {
		e.time(r.asked)
		e.str(r.askedBoot)
	}
}

// ages canonicalise times: what counts is their order, and whether a period has ended.
type ages struct {
	now  time.Time
	list []time.Duration
	rank [32]byte
}

const (
	longAgo  = 60
	inFuture = 128
)

func (s *small) ages(list []time.Duration) ages {
	a := ages{now: s.now, list: list}
	a.collect(s)
	if s.fairlead.saw != nil {
		a.collect(s.fairlead.saw)
	}
	slices.Sort(a.list)
	a.list = slices.Compact(a.list)
	past, _ := slices.BinarySearch(a.list, 0)
	rank := func(last, d time.Duration, is int) int {
		switch gap := (d - last).Abs(); {
		case gap == 0:
			return is
		case gap < modelReadyFor:
			return min(is+1, longAgo)
		default:
			return min((is/20+1)*20, longAgo)
		}
	}
	last, is := time.Duration(0), 0
	for at := past; at < len(a.list); at++ {
		is = rank(last, a.list[at], is)
		a.rank[at], last = byte(is), a.list[at]
	}
	last, is = 0, 0
	for at := past - 1; at >= 0; at-- { // by a clock that is ahead
		is = rank(last, a.list[at], is)
		a.rank[at], last = byte(is)|inFuture, a.list[at]
	}
	return a
}

func (a *ages) add(t time.Time) {
	if !t.IsZero() {
		if d := a.now.Sub(t); !slices.Contains(a.list, d) {
			a.list = append(a.list, d)
		}
	}
}

func (a *ages) ptr(t *metav1.Time) {
	if t != nil {
		a.add(t.Time)
	}
}

func (a *ages) collect(s *small) {
	for i := range s.nodes {
		a.add(s.nodes[i].changed)
		a.add(s.nodes[i].gone)
		a.add(s.fairlead.last[i].ReadyChanged)
		a.add(s.fairlead.last[i].At)
	}
	a.add(s.fairlead.started)
	a.add(s.clock())
	for i := range s.fairlead.records {
		r := &s.fairlead.records[i]
		if r.request.Gate != "" {
			a.add(r.asked)
		}
		is := &r.spec
		for _, t := range []*metav1.Time{is.LastSeen, is.ReadySince, is.ReadyChanged, is.LostSince, is.Tainted} {
			a.ptr(t)
		}
		for _, i := range is.Identities {
			for _, c := range i.Addresses {
				a.add(c.LastSeen.Time)
			}
		}
		for _, v := range is.Volumes {
			a.ptr(v.Until)
		}
		for _, f := range is.Fences {
			a.add(f.Since.Time)
			a.ptr(f.FailedAt)
		}
		for _, act := range is.Acts {
			a.ptr(act.Of)
		}
	}
}

func (a *ages) of(t time.Time) int {
	if t.IsZero() {
		return 254
	}
	at, _ := slices.BinarySearch(a.list, a.now.Sub(t))
	return int(a.rank[at])
}
