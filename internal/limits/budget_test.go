package limits

import "testing"

func TestBudgetIsBoundedInSumAndPerSource(t *testing.T) {
	b := NewBudget(10, 6)
	for i, step := range []struct {
		source string
		n      int64
		ok     bool
		used   int64
	}{
		{"a", 6, true, 6},
		{"a", 1, false, 6},
		{"b", 5, false, 6},
		{"b", 4, true, 10},
		{"c", 1, false, 10},
		{"a", -2, true, 8}, // gives back
		{"c", 2, true, 10},
		{"b", -4, true, 6},
		{"c", 4, true, 10},
		{"a", -4, true, 6},
		{"c", -6, true, 0},
		{"a", 7, false, 0},
		{"a", 6, true, 6},
	} {
		ok := true
		if step.n < 0 {
			b.Give(step.source, -step.n)
		} else {
			ok = b.Take(step.source, step.n)
		}
		if ok != step.ok || b.Used() != step.used {
			t.Fatalf("step %d, %s %+d: got %v, %d in use; want %v, %d", i, step.source, step.n, ok, b.Used(), step.ok, step.used)
		}
	}
}

func TestSourcesThatLeftAreForgotten(t *testing.T) {
	b := NewBudget(2, 1)
	for _, source := range []string{"a", "b", "c"} {
		b.Take(source, 1) // the last one is refused
	}
	b.Give("a", 1)
	b.Give("b", 1)
	if len(b.sources) != 0 {
		t.Errorf("still known: %v", b.sources)
	}
}

func TestSourceIsAnAddressWithoutPort(t *testing.T) {
	for remote, want := range map[string]string{"192.0.2.1:443": "192.0.2.1", "[2001:db8::1]:443": "2001:db8::1", "@": "@", "": ""} {
		if got := Source(remote); got != want {
			t.Errorf("%q: got %q, want %q", remote, got, want)
		}
	}
}
