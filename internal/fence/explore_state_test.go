package fence

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

type fingerprint [16]byte

// encoder writes a state so that two states of one text have the same future: times count by their order and by whether a period
// is over, incidents by their order.
type encoder struct {
	b         []byte
	ages      ages
	incidents []string
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

func (e *encoder) incident(i string) {
	if i == "" {
		e.num(255)
		return
	}
	at := slices.Index(e.incidents, i)
	if at < 0 {
		at = len(e.incidents)
		e.incidents = append(e.incidents, i)
	}
	e.num(at)
}

func (s *small) encode(e *encoder) {
	e.b, e.incidents, e.ages = e.b[:0], e.incidents[:0], s.ages(e.ages.list[:0])
	s.write(e)
	l := s.left
	e.b = append(e.b, l.freezes, l.powers, l.restarts, l.deletions, l.taints, l.acts, l.volumes, l.failures, l.replays, l.slow, l.waits, l.times, l.leaders, l.edits, l.crashes)
	if saw := s.fairlead.saw; saw != nil {
		e.flags(s.fairlead.todo[:]...)
		saw.write(e)
		for _, f := range saw.fences {
			same := func(now smallFence) bool { return now.Name == f.Name && now.ResourceVersion == f.ResourceVersion }
			e.flags(slices.ContainsFunc(s.fences, same))
		}
		for _, r := range saw.fairlead.records {
			same := func(now smallRecord) bool { return now.name == r.name && now.version == r.version }
			e.flags(slices.ContainsFunc(s.fairlead.records, same))
		}
	}
}

func (s *small) write(e *encoder) {
	for i := range s.nodes {
		m, n := &s.machines[i], &s.nodes[i]
		e.flags(m.on, m.reaches, m.waits, m.firstStatus, m.noticed, m.forgiven, m.lost, s.blocked[i])
		e.num(int(m.boot)<<2 | int(m.mount))
		e.flags(n.exists, n.ready, n.unknown, n.taint, n.inUse)
		e.num(int(n.uid)<<4 | int(n.boot)<<2 | int(n.attached))
		e.time(n.changed)
		e.time(n.gone)
		e.str(s.fairlead.lastBoot[i])
	}
	e.flags(s.volume)
	e.num(len(s.late))
	for _, l := range s.late {
		e.num(int(l.machine))
		e.flags(l.unblock)
	}
	e.time(s.fairlead.started)
	e.time(s.now.Add(s.fairlead.skew))
	e.num(len(s.fences))
	there := map[types.UID]bool{}
	for _, f := range s.fences {
		there[f.UID] = true
		e.incident(f.Labels[IncidentLabel])
		e.num(int(f.machine)<<4 | int(f.boot))
		e.flags(f.Unfenced, f.Deleting, f.due, f.relied)
		e.str(f.Message)
	}
	e.num(len(s.fairlead.records))
	for i := range s.fairlead.records {
		s.fairlead.records[i].write(e, there)
	}
}

// write a record. there are the NetworkFences that exist.
func (r *smallRecord) write(e *encoder, there map[types.UID]bool) {
	s := &r.status
	e.str(r.name)
	e.str(string(s.Phase))
	e.str(s.Reason)
	e.str(string(s.Node.UID))
	e.str(s.Node.BootID)
	e.str(s.Node.SystemUUID)
	e.flags(s.Gone, s.Released)
	e.num(s.Ordinal)
	for _, t := range []*metav1.Time{s.LastHealthy, s.ReadySince, s.ReadyChanged, s.LostSince, s.Tainted} {
		e.ptr(t)
	}
	e.incident(s.Incident)
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
		e.flags(v.Waiting, v.Detached)
		e.ptr(v.Until)
	}
	e.num(len(s.Fences))
	for _, f := range s.Fences {
		e.incident(f.Incident)
		e.str(f.State)
		e.flags(f.VolumesReleased, f.Message != "")
		e.num(f.Failures)
		e.flags(there[f.FailedUID])
		e.time(f.Since.Time)
	}
	e.num(len(s.Ended))
	for _, i := range s.Ended {
		e.incident(i)
	}
	if len(r.annotations) > 0 {
		o := r.read().Override
		e.str(o.Gate)
		if o.Gate != "" {
			e.time(o.At)
		}
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
	}
	a.add(s.fairlead.started)
	a.add(s.now.Add(s.fairlead.skew))
	for i := range s.fairlead.records {
		r := &s.fairlead.records[i]
		is := &r.status
		for _, t := range []*metav1.Time{is.LastHealthy, is.ReadySince, is.ReadyChanged, is.LostSince, is.Tainted} {
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
		}
		if len(r.annotations) > 0 {
			a.add(r.read().Override.At)
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
