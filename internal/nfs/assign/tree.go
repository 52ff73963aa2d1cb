package assign

import (
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

type match struct {
	best  int32 // index of a backend; -1: none takes a node
	ties  int32
	label uint64 // for ties between the two sides
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
			m.label = p.backends[leaves[i]].hash
			if p.takes(leaves[i]) {
				m.best, m.ties = leaves[i], 1
			}
		}
		t.inner[size+i] = m
	}
	for i := size - 1; i > 0; i-- {
		t.inner[i].label = t.inner[2*i+1].label ^ bits.RotateLeft64(t.inner[2*i].label, 1)
		t.play(p, i)
	}
	return t
}

// update plays the matches of a leaf again.
func (t *tree) update(p *Pool, leaf int32) {
	i := t.first + int(leaf)
	m := &t.inner[i]
	m.best, m.ties = -1, 0
	if p.takes(t.leaves[leaf]) {
		m.best, m.ties = t.leaves[leaf], 1
	}
	for i >>= 1; i > 0; i >>= 1 {
		t.play(p, i)
	}
}

func (t *tree) play(p *Pool, i int) {
	left, right, m := &t.inner[2*i], &t.inner[2*i+1], &t.inner[i]
	switch c := p.compare(left.best, right.best); {
	case c < 0:
		m.best, m.ties = left.best, left.ties
	case c > 0:
		m.best, m.ties = right.best, right.ties
	default:
		m.best, m.ties = left.best, left.ties+right.ties
	}
}

// pick returns the best backend, -1 if none takes a node. Among equals, hashes of
// the node with the labels of the tree's forks decide: rendezvous hashing over a
// tree, evenly over the leaves that tie. The same node finds the same backend in any process.
func (t *tree) pick(p *Pool, hash uint64) int32 {
	if t.inner[1].best < 0 {
		return -1
	}
	i := 1
	for i < t.first {
		left, right := &t.inner[2*i], &t.inner[2*i+1]
		c := p.compare(left.best, right.best)
		if c == 0 {
			c = 1
			if mix(hash^t.inner[i].label)%uint64(left.ties+right.ties) < uint64(left.ties) {
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
func (p *Pool) compare(a, b int32) int {
	switch {
	case a == b:
		return 0
	case b < 0:
		return -1
	case a < 0:
		return 1
	}
	x, y := &p.backends[a], &p.backends[b]
	if r := rank(x.Health) - rank(y.Health); r != 0 {
		return r
	}
	l, r := (x.nodes+1)*int64(y.Weight), (y.nodes+1)*int64(x.Weight)
	switch {
	case l < r:
		return -1
	case l > r:
		return 1
	}
	return 0
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
