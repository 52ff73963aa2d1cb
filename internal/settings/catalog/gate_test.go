package catalog

import (
	"os"
	"regexp"
	"testing"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Migratable and RWO volumes are not Shared: package cluster tests that.
func TestSharedVolumeGate(t *testing.T) {
	const stop = "RWX volume is attached: stop the workloads that use it, so that it is detached"
	detached, attached := rwx.Volume{Name: "pvc-b", Shared: true}, rwx.Volume{Name: "pvc-c", Shared: true, Attached: true}
	inUse := rwx.Volume{Name: "pvc-a", Shared: true, Attached: true, Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}}
	exclusive := rwx.Volume{Name: "pvc-d", Attached: true, Nodes: []string{"node-1"}}
	must.Equal(t, SharedVolumeGate([]rwx.Volume{detached, exclusive}), nil)
	must.Equal(t, SharedVolumeGate([]rwx.Volume{attached, detached, inUse, exclusive}), []Blocker{
		{Kind: BlockedByVolume, Name: "pvc-a", Nodes: []string{"node-1"}, Workloads: []string{"default/web-0"}, Message: stop},
		{Kind: BlockedByVolume, Name: "pvc-c", Message: stop},
	})
}

// The comment in the API is for users of kubectl explain.
func TestBlockerKindsAreDocumented(t *testing.T) {
	code, err := os.ReadFile("gate.go")
	must.Do(t, err)
	api, err := os.ReadFile("../../../api/v1alpha1/setting_types.go")
	must.Do(t, err)
	documented := regexp.MustCompile(`(?s)// Kind of the blocker: .*?\.\n`).Find(api)
	kinds := regexp.MustCompile(`BlockerKind = "(\w+)"`).FindAllSubmatch(code, -1)
	must.True(t, len(kinds) != 0, "gate.go has no kinds of blockers")
	for _, kind := range kinds {
		must.Check(t, regexp.MustCompile(`\b`+string(kind[1])+`\b`).Match(documented), "%s is not in %q", kind[1], documented)
	}
}
