package assign

import (
	"cmp"
	"math/bits"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// tree is a tournament over backends: each inner node holds the better of its two
// sides and how many leaves are as good. A change costs one path to the root.
type tree struct {
	leaves []int32 // indices of backends, sorted by address
	first  int     // number of the first leaf
	inner  []match
}

// match is small, and the two sides of a fork are neighbours in memory.
type match struct {
	best  int32 // index of a backend; -1: none takes a node
	ties  int32
	label uint64 // for ties between the two sides
	// key of the best backend.
	nodes        int64
	weight, rank int16
	// won is the side that is better, left if negative; 0 is a tie.
	won int8
}

func newTree(p *Pool, leaves []int32) *tree {
	size := 1
	if len(leaves) > 1 {
		size = 1 << bits.Len(uint(len(leaves)-1))
	}
	t := &tree{leaves: leaves, first: size, inner: make([]match, 2*size)}
	for i := range size {
		m := match{best: -1}
		if i < len(leaves) {
			m = p.entrant(leaves[i])
		}
		t.inner[size+i] = m
	}
	for i := size - 1; i > 0; i-- {
		t.inner[i].label = t.inner[2*i+1].label ^ bits.RotateLeft64(t.inner[2*i].label, 1)
		t.play(i)
	}
	return t
}

// entrant is the leaf of a backend.
func (p *Pool) entrant(b int32) match {
	x := &p.backends[b]
	m := match{best: -1, label: x.hash}
	if p.takes(b) {
		m.best, m.ties, m.nodes, m.weight, m.rank = b, 1, x.nodes, int16(x.Weight), int16(rank(x.Health))
	}
	return m
}

// update plays the matches of a leaf again.
func (t *tree) update(p *Pool, leaf int32) {
	i := t.first + int(leaf)
	t.inner[i] = p.entrant(t.leaves[leaf])
	for i >>= 1; i > 0; i >>= 1 {
		t.play(i)
	}
}

func (t *tree) play(i int) {
	left, right, m := &t.inner[2*i], &t.inner[2*i+1], &t.inner[i]
	c, better, ties := compare(left, right), left, left.ties
	switch {
	case c > 0:
		better, ties = right, right.ties
	case c == 0:
		ties += right.ties
	}
	m.best, m.ties, m.nodes, m.weight, m.rank, m.won = better.best, ties, better.nodes, better.weight, better.rank, int8(c)
}

// pick returns the best backend, -1 if none takes a node. Among equals, hashes of
// the node with the labels of the tree's forks decide: rendezvous hashing over a
// tree, evenly over the leaves that tie. The same node finds the same backend in any process.
func (t *tree) pick(hash uint64) int32 {
	if t.inner[1].best < 0 {
		return -1
	}
	i := 1
	for i < t.first {
		c := t.inner[i].won
		if c == 0 {
			left, right := uint64(t.inner[2*i].ties), uint64(t.inner[2*i+1].ties)
			if c = 1; mix(hash^t.inner[i].label)%(left+right) < left {
				c = -1
			}
		}
		i *= 2
		if c > 0 {
			i++
		}
	}
	return t.inner[i].best
}

// compare orders backends for a new node: healthy ones first, then those not
// probed yet, then those that fail and are kept in use; then by nodes for the
// weight, the new one included. Negative: a is better.
func compare(a, b *match) int {
	switch {
	case a.best < 0 && b.best < 0:
		return 0
	case b.best < 0:
		return -1
	case a.best < 0:
		return 1
	case a.rank != b.rank:
		return cmp.Compare(a.rank, b.rank)
	}
	return cmp.Compare((a.nodes+1)*int64(b.weight), (b.nodes+1)*int64(a.weight))
}

func rank(h nfs.Health) int {
	switch h {
	case nfs.Healthy:
		return 0
	case nfs.Unknown:
		return 1
	case nfs.Failing:
		return 2
	default:
		return 3
	}
}

// mix spreads the bits of a hash (the finalizer of SplitMix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
