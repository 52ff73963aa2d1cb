package binaries

import (
	"testing"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
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

func TestOtherKubernetesIsBuiltInItsOwnModule(t *testing.T) {
	pinned, err := controlplane.PinnedVersions()
	if err != nil {
		t.Fatal(err)
	}
	other := pinned
	other.Kubernetes = "v1.31.1"
	for _, test := range []struct {
		versions controlplane.Versions
		want     string
	}{{pinned, "./cmd/"}, {other, "k8s.io/kubernetes/cmd/"}} {
		components, err := Components(test.versions)
		if err != nil {
			t.Fatal(err)
		}
		for _, component := range components {
			want := Component{Package: "./cmd/" + component.Name}
			switch component.Name {
			case APIServer, ControllerManager, Scheduler, Kubectl:
				want = Component{Package: test.want + component.Name, OwnModule: test.versions == other}
			case Kwok:
				want.Package = component.Package
			}
			if component.Package != want.Package || component.OwnModule != want.OwnModule {
				t.Errorf("with Kubernetes %s, %s is %s (own module: %v), want %s (%v)", test.versions.Kubernetes,
					component.Name, component.Package, component.OwnModule, want.Package, want.OwnModule)
			}
		}
	}
}
