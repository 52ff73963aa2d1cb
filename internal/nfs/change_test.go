package nfs

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestChangeOfBackends(t *testing.T) {
	before := []Backend{
		{Addr: at("10.0.0.1:2049"), Weight: 1, Health: Healthy},
		{Addr: at("10.0.0.2:2049"), Weight: 1, Health: Down},
		{Addr: at("10.0.0.3:2049"), Weight: 1, Health: Healthy},
	}
	describe := func(list []Backend) (texts []string) {
		for _, m := range list {
			texts = append(texts, fmt.Sprint(m.Address(), " ", m.Weight, " ", m.Drain, " ", m.Health))
		}
		return texts
	}
	got, problems := Change{
		Add:   []v1alpha1.NFSBackend{{Address: "10.0.0.4", Weight: ptr.To[int32](2)}},
		Drain: []string{"10.0.0.1"}, Remove: []string{"10.0.0.3:2049"}, Weights: map[string]int32{"10.0.0.2": 5},
	}.Apply(before, DefaultPort)
	if want := []string{"10.0.0.1 1 true Healthy", "10.0.0.2 5 false Down", "10.0.0.4 2 false Healthy"}; len(problems) > 0 || !slices.Equal(describe(got), want) {
		t.Errorf("got %v, %v", describe(got), problems)
	}
	got, problems = Change{
		Add:   []v1alpha1.NFSBackend{{Address: "10.0.0.1"}, {Address: "x"}},
		Drain: []string{"10.0.0.9", "10.0.0.1:1"}, Remove: []string{"y"}, Weights: map[string]int32{"10.0.0.2": 0, "z": 1},
	}.Apply(before, DefaultPort)
	must.Equal(t, fields(problems), []string{"add[1].address", "add", "drain[0]", "drain[1]", "weight[10.0.0.2]", "weight[z]", "remove[0]"}, "got %v", problems)
	must.Equal(t, describe(got), describe(before), "what is wrong changes")
}

func TestAddressOfBackendReadsBack(t *testing.T) {
	for addr, want := range map[string]string{"10.0.0.1:2049": "10.0.0.1", "10.0.0.1:2050": "10.0.0.1:2050", "[fd00::1]:2049": "fd00::1", "[fd00::1]:1": "[fd00::1]:1"} {
		text := Backend{Addr: at(addr)}.Address()
		if again, err := ParseEndpoint(text, DefaultPort); text != want || err != nil || again != at(addr) {
			t.Errorf("%s: %s, %s, %v", addr, text, again, err)
		}
	}
}
