package fence

import (
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

func TestRecordedLoss(t *testing.T) {
	const loss = "boot-1@2026-01-01T12:01:00Z"
	for name, c := range map[string]struct {
		change func(*story)
		want   string
	}{
		"lost":                           {func(*story) {}, loss + " pv-1"},
		"being fenced":                   {func(s *story) { s.Node.OutOfService = true; s.look() }, loss + " pv-1"},
		"fenced":                         {func(s *story) { s.Node.OutOfService = true; s.look(); s.csi(); s.look() }, loss},
		"lost again":                     {func(s *story) { s.Node.ReadyChanged = s.Node.ReadyChanged.Add(time.Second) }, "boot-1@2026-01-01T12:01:01Z pv-1"},
		"not recorded yet":               {func(s *story) { s.Status.Phase = v1alpha1.NodeHealthy }, ""},
		"its kubelet says it is not up":  {func(s *story) { s.Node.Unknown = false }, ""},
		"back":                           {func(s *story) { s.Node.Ready, s.Node.Unknown = true, false; s.look() }, ""},
		"another boot than is on record": {func(s *story) { s.Node.Machine.BootID = "boot-2" }, ""},
		"its Node is gone":               {func(s *story) { s.Node = Node{Name: "node-1"} }, ""},
		"no boot ID":                     {func(s *story) { s.Node.Machine.BootID, s.Status.Node.BootID = "", "" }, ""},
		"given up": {func(s *story) {
			s.taint(true).look()
			s.override(GateUnfence).look()
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := lostStory(t)
			s.Node.Unknown = true
			s.look()
			c.change(s)
			if got := RecordedLoss(s.Node, s.Status); got != c.want {
				t.Errorf("got %q, want %q: %+v", got, c.want, s.Status)
			}
		})
	}
}
