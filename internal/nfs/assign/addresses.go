package assign

import "github.com/cespare/xxhash/v2"

// addressTable gives each address a small number, so that nodes need no copy of its text.
type addressTable struct {
	index map[string]int32
	list  []address
	free  []int32
}

type address struct {
	text    string
	hash    uint64
	backend int32 // -1: leads to no backend
	nodes   int32 // that count here
	held    int32 // volumes that have the address
}

// of returns the number of an address, and adds the address if need be.
func (t *addressTable) of(text string) int32 {
	if i, ok := t.index[text]; ok {
		return i
	}
	a := address{text: text, hash: xxhash.Sum64String(text), backend: -1}
	i := int32(len(t.list))
	if last := len(t.free) - 1; last >= 0 {
		i, t.free = t.free[last], t.free[:last]
		t.list[i] = a
	} else {
		t.list = append(t.list, a)
	}
	t.index[text] = i
	return i
}

func (t *addressTable) unlink() {
	for i := range t.list {
		t.list[i].backend = -1
	}
}

func (t *addressTable) clear() {
	for i := range t.list {
		t.list[i].nodes, t.list[i].held = 0, 0
	}
}

// sweep frees the numbers of addresses that no node has and that lead to no backend.
func (t *addressTable) sweep() {
	for text, i := range t.index {
		if a := t.list[i]; a.backend < 0 && a.held == 0 {
			delete(t.index, text)
			t.free = append(t.free, i)
		}
	}
}
