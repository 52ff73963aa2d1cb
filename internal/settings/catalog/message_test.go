package catalog

import "testing"

func TestDetail(t *testing.T) {
	for name, test := range map[string]struct {
		blockers []Blocker
		want     string
	}{
		"none":           {},
		"only a name":    {[]Blocker{{Name: "pvc-a"}}, "pvc-a"},
		"nodes and pods": {[]Blocker{{Name: "pvc-a", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}, {Name: "pvc-b", Nodes: []string{"node-1"}}}, "pvc-a (node-2, pod default/web-0), pvc-b (node-1)"},
		"many users":     {[]Blocker{{Name: "pvc-a", Nodes: []string{"n1", "n2"}, Workloads: []string{"d/a", "d/b", "d/c"}}}, "pvc-a (n1, n2, pod d/a, and 2 more)"},
		"many volumes":   {[]Blocker{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}, "a, b, c, and 2 more"},
		"as many as fit": {[]Blocker{{Name: "a", Nodes: []string{"n1", "n2", "n3"}}, {Name: "b"}, {Name: "c"}}, "a (n1, n2, n3), b, c"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Detail(test.blockers); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDetailLeavesTheBlockerAsItIs(t *testing.T) {
	nodes := make([]string, 2, 8)
	nodes[0], nodes[1] = "n1", "n2"
	Detail([]Blocker{{Name: "pvc-a", Nodes: nodes, Workloads: []string{"d/a"}}})
	if spare := nodes[:3][2]; spare != "" {
		t.Fatalf("wrote %q behind the caller's nodes", spare)
	}
}

func TestShort(t *testing.T) {
	volume := func(name string) Blocker { return Blocker{Kind: BlockedByVolume, Name: name, Message: "not this"} }
	for name, test := range map[string]struct {
		blockers []Blocker
		want     string
	}{
		"none":                            {},
		"one volume":                      {[]Blocker{volume("pvc-a")}, "1 RWX volume attached: pvc-a"},
		"several volumes":                 {[]Blocker{volume("a"), volume("b"), volume("c"), volume("d")}, "4 RWX volumes attached: a, b, c, and 1 more"},
		"anything else speaks for itself": {[]Blocker{{Kind: BlockedByClient, Name: "csi-1", Message: "CSI plugin pod csi-1 on n1 is not Ready"}, volume("a")}, "CSI plugin pod csi-1 on n1 is not Ready"},
		"volumes among others":            {[]Blocker{volume("a"), {Kind: BlockedByServer, Message: "m"}}, "1 RWX volume attached: a"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Short(test.blockers); got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 Services", 1: "1 Service", 2: "2 Services"} {
		if got := Count(n, "Service"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
