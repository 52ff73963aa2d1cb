package fence

import (
	"testing"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func TestTheBootThatIsFenced(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*story)
		want   string
	}{
		"fenced and drained":                     {func(*story) {}, "boot-1"},
		"fenced, and pods are left":              {func(s *story) { s.Left = []string{"pod default/db-0"}; s.look() }, "boot-1"},
		"back without a boot":                    {func(s *story) { s.Node.Ready = true; s.look() }, "boot-1"},
		"not confirmed any more":                 {func(s *story) { s.Fences[0].Result = ""; s.look() }, ""},
		"a volume that no fence is for":          {func(s *story) { s.Status.Volumes = append(s.Status.Volumes, held("pv-2", other, "b")) }, ""},
		"the same, and its storage switched off": {func(s *story) { s.Holding = append(s.Holding, held("pv-2", "off.example.com", "")); s.look() }, ""},
		"its taint was taken away":               {func(s *story) { s.Node.OutOfService = false; s.look() }, ""},
		"booted anew":                            {func(s *story) { s.boot("boot-2"); s.look() }, ""},
		"booted anew, and not heard of yet":      {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ""},
		"to be let in without a boot":            {func(s *story) { s.Override = Override{Gate: GateUnfence, Reason: "x"}; s.look() }, ""},
		"its object is gone":                     {func(s *story) { s.Node = Node{Name: "node-1"}; s.look() }, ""},
		"no boot ID":                             {func(s *story) { s.Node.Machine.BootID, s.Status.Node.BootID = "", "" }, ""},
		"only a fence of before":                 {func(s *story) { s.Status.Incident = "node-1-another" }, ""},
		"only lost":                              {func(s *story) { s.Status.Phase = v1alpha1.NodeLost }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := fenced(t)
			test.change(s)
			if got := FencedBoot(s.Node, s.Status); got != test.want {
				t.Errorf("got %q, want %q: %+v", got, test.want, s.Status)
			}
		})
	}
	if s := lostStory(t); FencedBoot(s.Node, s.Status) != "" {
		t.Error("not fenced yet")
	}
}
