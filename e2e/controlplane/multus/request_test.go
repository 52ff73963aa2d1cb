package multus

import (
	"testing"
)

func TestBothFormsOfTheRequestAreRead(t *testing.T) {
	type network struct{ namespace, name, interfaceName string }
	for annotation, want := range map[string][]network{
		"storage":                    {{"pods", "storage", "net1"}},
		"kube-system/storage@lhnet2": {{"kube-system", "storage", "lhnet2"}},
		"a, other/b@x ,c":            {{"pods", "a", "net1"}, {"other", "b", "x"}, {"pods", "c", "net3"}},
		`[{"name":"a"},{"name":"b","namespace":"ns","interface":"lhnet1"}]`: {{"pods", "a", "net1"}, {"ns", "b", "lhnet1"}},
	} {
		elements, err := parseRequest(annotation, "pods")
		if err != nil {
			t.Errorf("%s: %v", annotation, err)
			continue
		}
		if len(elements) != len(want) {
			t.Errorf("%s: %d networks, want %d", annotation, len(elements), len(want))
			continue
		}
		for i, element := range elements {
			if got := (network{element.Namespace, element.Name, element.InterfaceRequest}); got != want[i] {
				t.Errorf("%s: network %d is %v, want %v", annotation, i, got, want[i])
			}
		}
	}
}

func TestUnreadableRequestIsRefused(t *testing.T) {
	for _, annotation := range []string{"a/b/c", "/a", "a,,b", "@eth1", "[{]", `{"name":"a"}`, `[{"namespace":"a"}]`, "two words"} {
		if elements, err := parseRequest(annotation, "pods"); err == nil {
			t.Errorf("%q is read as %v, want an error", annotation, elements)
		}
	}
}
