package catalog

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestKindValues(t *testing.T) {
	checkValues(t, AutoDeletePodBlacklist, `must be <group>/<Kind> of controllers, separated by ";", like apps/StatefulSet;apps/DaemonSet, or "" for none`, accepted{
		"": "", " ": "", "apps/StatefulSet": "apps/StatefulSet", "apps/ReplicaSet;apps/DaemonSet": "apps/ReplicaSet;apps/DaemonSet",
		" apps/ReplicaSet ; apps/DaemonSet ": "apps/ReplicaSet;apps/DaemonSet", ";apps/ReplicaSet;;": "apps/ReplicaSet",
		"/ReplicationController": "/ReplicationController", "kubevirt.io/VirtualMachineInstance": "kubevirt.io/VirtualMachineInstance", "a/B2": "a/B2",
	}, refused{
		"true": "", "StatefulSet": "", "apps/v1/StatefulSet": "", "apps/statefulsets": "", "apps/": "", "apps/ReplicaSet,apps/DaemonSet": "",
		"Apps/StatefulSet": "", "apps./StatefulSet": "", "-apps/StatefulSet": "", "apps/Stateful-Set": "", "apps/ReplicaSet;x": "", "apps/ReplicaSet\nx": "",
	})
	must.Equal(t, Kinds(" apps/ReplicaSet ;;x"), []string{"apps/ReplicaSet", "x"})
	must.Equal(t, lookup(t, AutoDeletePodBlacklist).Default, "", "default, as in Longhorn 1.10.1 to 1.12")
}

// The blacklist accepts the group and kind of every controller.
func TestEveryKindCanBeBlacklisted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.StringMatching(`([a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,5})?)?`).Draw(t, "group")
		owner := rwx.Owner{APIVersion: "v1", Kind: rapid.StringMatching(`[A-Z][A-Za-z0-9]{0,10}`).Draw(t, "kind")}
		if group != "" {
			owner.APIVersion = group + "/" + rapid.SampledFrom([]string{"v1", "v1alpha2"}).Draw(t, "version")
		}
		_, err := normalizeKinds("apps/ReplicaSet;" + owner.GroupKind())
		must.True(t, err == nil, "%s: %v", owner.GroupKind(), err)
		must.True(t, slices.Contains(Kinds("apps/ReplicaSet;"+owner.GroupKind()), owner.GroupKind()), "%s is not found", owner.GroupKind())
	})
}
