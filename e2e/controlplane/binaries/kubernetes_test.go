package binaries

import (
	"slices"
	"strings"
	"testing"
)

func TestKubernetesBecomesARequirement(t *testing.T) {
	const original = `// Generated.
module k8s.io/kubernetes

go 1.22.0

require (
	github.com/blang/semver/v4 v4.0.0
	k8s.io/api v0.0.0
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/kms => ./staging/src/k8s.io/kms
)
`
	const want = `// Generated.
module fairlead.invalid/kubernetes

go 1.22.0

require (
	github.com/blang/semver/v4 v4.0.0
	k8s.io/api v0.0.0
)

replace (
	k8s.io/api => k8s.io/api v0.31.1
	k8s.io/kms => k8s.io/kms v0.31.1
)

require k8s.io/kubernetes v1.31.1
`
	if got := string(asRequirement([]byte(original), "v1.31.1")); got != want {
		t.Errorf("go.mod is\n%s\nwant\n%s", got, want)
	}
}

func TestKubernetesReportsItsVersion(t *testing.T) {
	flags := strings.Fields(kubernetesVersion("v1.31.1"))
	slices.Sort(flags)
	const prefix = "-X=k8s.io/component-base/version."
	if want := []string{prefix + "gitMajor=1", prefix + "gitMinor=31", prefix + "gitVersion=v1.31.1"}; !slices.Equal(flags, want) {
		t.Errorf("flags are %q, want %q", flags, want)
	}
}
