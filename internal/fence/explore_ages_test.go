package fence

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
