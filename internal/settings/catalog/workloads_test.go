package catalog

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func TestKindsAreReadAsLonghornWritesThem(t *testing.T) {
	const refused = `must be <group>/<Kind> of controllers, separated by ";", like apps/StatefulSet;apps/DaemonSet, or "" for none`
	for name, test := range map[string]struct {
		value   string
		want    []string
		problem string
	}{
		"none":                               {value: ""},
		"blank":                              {value: " "},
		"one":                                {value: "apps/StatefulSet", want: []string{"apps/StatefulSet"}},
		"ReplicaSets and DaemonSets":         {value: "apps/ReplicaSet;apps/DaemonSet", want: []string{"apps/ReplicaSet", "apps/DaemonSet"}},
		"space around each":                  {value: " apps/ReplicaSet ; apps/DaemonSet ", want: []string{"apps/ReplicaSet", "apps/DaemonSet"}},
		"nothing between semicolons":         {value: ";apps/ReplicaSet;;", want: []string{"apps/ReplicaSet"}},
		"the core group":                     {value: "/ReplicationController", want: []string{"/ReplicationController"}},
		"a group with dots":                  {value: "kubevirt.io/VirtualMachineInstance", want: []string{"kubevirt.io/VirtualMachineInstance"}},
		"no group, no slash":                 {value: "StatefulSet", want: []string{"StatefulSet"}, problem: refused},
		"with a version":                     {value: "apps/v1/StatefulSet", want: []string{"apps/v1/StatefulSet"}, problem: refused},
		"a resource in place of a kind":      {value: "apps/statefulsets", want: []string{"apps/statefulsets"}, problem: refused},
		"no kind":                            {value: "apps/", want: []string{"apps/"}, problem: refused},
		"separated by a comma":               {value: "apps/ReplicaSet,apps/DaemonSet", want: []string{"apps/ReplicaSet,apps/DaemonSet"}, problem: refused},
		"a group in upper case":              {value: "Apps/StatefulSet", want: []string{"Apps/StatefulSet"}, problem: refused},
		"a group that ends in a dot":         {value: "apps./StatefulSet", want: []string{"apps./StatefulSet"}, problem: refused},
		"one of several":                     {value: "apps/ReplicaSet;x", want: []string{"apps/ReplicaSet", "x"}, problem: refused},
		"a line after it":                    {value: "apps/ReplicaSet\nx", want: []string{"apps/ReplicaSet\nx"}, problem: refused},
		"a blacklist is no boolean":          {value: "true", want: []string{"true"}, problem: refused},
		"a kind with letters of no Go name":  {value: "apps/Stateful-Set", want: []string{"apps/Stateful-Set"}, problem: refused},
		"a group that begins with a hyphen":  {value: "-apps/StatefulSet", want: []string{"-apps/StatefulSet"}, problem: refused},
		"a group of one letter, and a digit": {value: "a/B2", want: []string{"a/B2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Kinds(test.value); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			definition, _ := Lookup(string(AutoDeletePodBlacklist))
			if got := errorText(definition.Parse(test.value)); got != test.problem {
				t.Errorf("got %q, want %q", got, test.problem)
			}
		})
	}
}

// What is accepted for the blacklist can match a controller: the two forms are one.
func TestEveryKindCanBeBlacklisted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		group := rapid.StringMatching(`([a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{2,5})?)?`).Draw(t, "group")
		owner := storage.Owner{APIVersion: "v1", Kind: rapid.StringMatching(`[A-Z][A-Za-z0-9]{0,10}`).Draw(t, "kind")}
		if group != "" {
			owner.APIVersion = group + "/" + rapid.SampledFrom([]string{"v1", "v1alpha2"}).Draw(t, "version")
		}
		if _, err := normalizeKinds("apps/ReplicaSet;" + owner.GroupKind()); err != nil {
			t.Fatalf("%s: %v", owner.GroupKind(), err)
		}
		if !slices.Contains(Kinds("apps/ReplicaSet;"+owner.GroupKind()), owner.GroupKind()) {
			t.Fatalf("%s is not found", owner.GroupKind())
		}
	})
}

func TestSettingsOfWorkloadsAreNoDangerZone(t *testing.T) {
	for _, name := range []Name{AutoDeletePod, AutoDeletePodBlacklist} {
		if d, _ := Lookup(string(name)); d.Gate != AtOnce {
			t.Errorf("%s waits for something", name)
		}
		if slices.ContainsFunc(DangerZone(), func(d Definition) bool { return d.Name == name }) {
			t.Errorf("%s is in the danger zone", name)
		}
	}
}

// Longhorn 1.10.1 to 1.12 has the same default: no kind of controller is spared.
func TestBlacklistIsEmptyByDefault(t *testing.T) {
	d, _ := Lookup(string(AutoDeletePodBlacklist))
	if d.Default != "" {
		t.Errorf("the default is %q", d.Default)
	}
}
