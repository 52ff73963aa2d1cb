package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDetail(t *testing.T) {
	for want, blockers := range map[string][]Blocker{
		"":      nil,
		"pvc-a": {{Name: "pvc-a"}},
		"pvc-a (node-2, pod default/web-0), pvc-b (node-1)": {{Name: "pvc-a", Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}, {Name: "pvc-b", Nodes: []string{"node-1"}}},
		"pvc-a (n1, n2; 3 pods)":                            {{Name: "pvc-a", Nodes: []string{"n1", "n2"}, Workloads: []string{"d/a", "d/b", "d/c"}}},
		"pvc-a (n1, n2, n3, and 1 more; 1 pod)":             {{Name: "pvc-a", Nodes: []string{"n1", "n2", "n3", "n4"}, Workloads: []string{"d/a"}}},
		"pvc-a (n1, n2, n3, and 2 more)":                    {{Name: "pvc-a", Nodes: []string{"n1", "n2", "n3", "n4", "n5"}}},
		"pvc-a (pod d/a, pod d/b, pod d/c, and 1 more)":     {{Name: "pvc-a", Workloads: []string{"d/a", "d/b", "d/c", "d/e"}}},
		"a, b, c, and 2 more":                               {{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}},
		"a (n1, n2, n3), b, c":                              {{Name: "a", Nodes: []string{"n1", "n2", "n3"}}, {Name: "b"}, {Name: "c"}},
	} {
		must.Equal(t, Detail(blockers), want)
	}
}

func TestDetailDoesNotChangeBlockers(t *testing.T) {
	nodes := make([]string, 2, 8)
	nodes[0], nodes[1] = "n1", "n2"
	Detail([]Blocker{{Name: "pvc-a", Nodes: nodes, Workloads: []string{"d/a"}}})
	must.Equal(t, nodes[:3][2], "", "the element after the nodes")
}

func TestShort(t *testing.T) {
	volume := func(name string) Blocker { return Blocker{Kind: BlockedByVolume, Name: name, Message: "unused"} }
	server := Blocker{Kind: BlockedByServer, Name: "share-manager-a", Message: "server pod runs"}
	engine := Blocker{Kind: BlockedByVolume, Name: "pvc-b", Noun: "v1 volume"}
	for want, blockers := range map[string][]Blocker{
		"":                             nil,
		"1 RWX volume attached: pvc-a": {volume("pvc-a")},
		"4 RWX volumes attached: a, b, c, and 1 more": {volume("a"), volume("b"), volume("c"), volume("d")},
		"server pod runs":             {server, volume("a")},
		"1 RWX volume attached: a":    {volume("a"), server},
		"1 v1 volume attached: pvc-b": {engine},
	} {
		must.Equal(t, Short(blockers), want)
	}
}

func TestFirstOf(t *testing.T) {
	must.Equal(t, FirstOf([]string{"a", "b", "c"}), "a, b, c")
	must.Equal(t, FirstOf([]string{"a", "b", "c", "d", "e"}), "a, b, c, and 2 more")
}
