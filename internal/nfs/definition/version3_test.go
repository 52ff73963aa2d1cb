package definition

import (
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

func TestMountsNeedPublishedPortsAndStatd(t *testing.T) {
	perNode := &Service{Exposure: nfs.PerNode, Versions: []int32{3, 4}, Port: 2049}
	only3 := &Service{Exposure: nfs.PerNode, Versions: []int32{3}, Port: 2049}
	stable := &Service{Exposure: nfs.Stable, Versions: []int32{3, 4}, Port: 2049}
	slots := &Service{Exposure: nfs.PerNodeStable, Versions: []int32{3}, Port: 2049, MountPort: 20048}
	only4 := &Service{Exposure: nfs.PerNodeStable, Versions: []int32{4}, Port: 2049, MountPort: 20048}
	for name, c := range map[string]struct {
		options string
		service *Service
		statd   bool
		words   []string
	}{
		"version 4":                        {"vers=4.1", stable, false, nil},
		"v4":                               {"v4.2", stable, false, nil},
		"agreed on version 4":              {"hard", perNode, false, nil},
		"no locks":                         {"vers=3,nolock", perNode, false, nil},
		"locks without statd":              {"vers=3", perNode, false, []string{"add nolock"}},
		"locks asked for":                  {"nfsvers=3,lock", perNode, false, []string{"nfs.statd: on"}},
		"locks with statd":                 {"v3", perNode, true, nil},
		"servers of version 3 only":        {"hard", only3, false, []string{"add nolock"}},
		"unknown service":                  {"vers=3", nil, false, []string{"add nolock"}},
		"unknown service and version":      {"hard", nil, false, nil},
		"cluster IP without ports":         {"vers=3,nolock", stable, false, []string{"spec.health.mountPort"}},
		"cluster IP with locks":            {"vers=3", stable, true, []string{"ports of NFSv3's locks", "spec.health.mountPort"}},
		"cluster IP with ports":            {"vers=3,nolock", slots, false, nil},
		"the published port":               {"vers=3,nolock,mountport=20048,mountproto=tcp", slots, false, nil},
		"another port":                     {"vers=3,nolock,mountport=4002", slots, false, []string{"mountport=4002"}},
		"UDP":                              {"vers=3,nolock,proto=udp", slots, false, []string{"TCP only"}},
		"version 4 over RDMA":              {"vers=4.1,proto=rdma", stable, false, []string{"TCP only"}},
		"version 4 over RDMA to servers":   {"vers=4.1,proto=rdma", perNode, false, nil},
		"TCP":                              {"vers=3,nolock,tcp", slots, false, nil},
		"ports that are not for version 3": {"vers=3,nolock", only4, false, []string{"3 into spec.versions"}},
		"version 4 of servers with a port": {"hard", only4, false, nil},
	} {
		o, problems := options.Parse("o", []string{c.options})
		if len(problems) > 0 {
			t.Fatal(name, problems)
		}
		problems = CheckMount("o", o, c.service, c.statd)
		if len(problems) != len(c.words) {
			t.Errorf("%s: %v, want %d problems", name, problems, len(c.words))
			continue
		}
		for i, words := range c.words {
			if !strings.Contains(problems[i].Message, words) {
				t.Errorf("%s: %s, want %s", name, problems[i].Message, words)
			}
		}
	}
}
