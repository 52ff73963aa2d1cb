package rpc

import (
	"container/heap"
	"time"
)

// entry is one target of a Prober.
type entry[K comparable] struct {
	key    K
	target Target
	due    time.Time
	first  bool // not probed yet
	gone   bool // removed or replaced; its result is dropped
	index  int  // in the queue; -1: being probed
}

// queue is a heap of entries, with the earliest due on top.
type queue[K comparable] []*entry[K]

func (q queue[K]) Len() int { return len(q) }

func (q queue[K]) Less(i, j int) bool { return q[i].due.Before(q[j].due) }

func (q queue[K]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue[K]) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	e.index = -1
	return e
}

func (q *queue[K]) add(e *entry[K])    { heap.Push(q, e) }
func (q *queue[K]) take() *entry[K]    { return heap.Pop(q).(*entry[K]) }
func (q *queue[K]) remove(e *entry[K]) { heap.Remove(q, e.index) }
