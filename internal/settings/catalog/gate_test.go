package catalog

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/fairlead-io/fairlead/internal/storage"
)

// Migratable and RWO volumes reach this package as not shared; the table of
// which is which is in package cluster.
func TestSharedVolumeGate(t *testing.T) {
	const stop = "RWX volume is attached: stop the workloads that use it, so that it is detached"
	for name, test := range map[string]struct {
		volumes []storage.Volume
		want    []Blocker
	}{
		"no volumes":                        {},
		"a detached RWX volume":             {volumes: []storage.Volume{{Name: "pvc-a", Shared: true}}},
		"an attached RWO or migratable one": {volumes: []storage.Volume{{Name: "pvc-a", Attached: true, Nodes: []string{"node-1"}}}},
		"an attached RWX volume": {
			volumes: []storage.Volume{{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}}},
			want:    []Blocker{{Kind: BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}, Message: stop}},
		},
		"attached, nobody knows where": {
			volumes: []storage.Volume{{Name: "pvc-a", Shared: true, Attached: true}},
			want:    []Blocker{{Kind: BlockedByVolume, Name: "pvc-a", Message: stop}},
		},
		"those that block, by name": {
			volumes: []storage.Volume{
				{Name: "pvc-c", Shared: true, Attached: true}, {Name: "pvc-b", Shared: true}, {Name: "pvc-a", Shared: true, Attached: true}, {Name: "pvc-d", Attached: true},
			},
			want: []Blocker{{Kind: BlockedByVolume, Name: "pvc-a", Message: stop}, {Kind: BlockedByVolume, Name: "pvc-c", Message: stop}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := SharedVolumeGate(test.volumes); !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// The API documents every kind of blocker that there is.
func TestBlockerKindsAreDocumented(t *testing.T) {
	here, err := os.ReadFile("gate.go")
	if err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile("../../../api/v1alpha1/setting_types.go")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile(`(?s)// Kind of the thing: .*?\.\n`).Find(api)
	kinds := regexp.MustCompile(`BlockerKind = "(\w+)"`).FindAllSubmatch(here, -1)
	if len(kinds) == 0 {
		t.Fatal("no kinds are found")
	}
	for _, kind := range kinds {
		if !regexp.MustCompile(`\b` + string(kind[1]) + `\b`).Match(documented) {
			t.Errorf("%s is not in %q", kind[1], documented)
		}
	}
}
