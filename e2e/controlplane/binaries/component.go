// Package binaries finds or builds the programs a control plane is made of, and builds the addons that tests run beside it.
package binaries

import (
	"strings"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// Names of the programs, which are also their file names.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	Kubectl           = "kubectl"
	Kwok              = "kwok"
	CertManager       = "cert-manager"
)

// Component is one program of the control plane.
type Component struct {
	Name    string
	Version string
	// Package is what `go build` is given, inside this module or OwnModule.
	Package string
	// OwnModule: built from Kubernetes' own module, since Kubernetes is not of the version in go.mod.
	OwnModule bool
	// Variables are set in the program by the linker.
	Variables map[string]string
	// VersionArgs make the program print its version. Without them the program
	// is always built: there is no program of that name to be found elsewhere.
	VersionArgs []string
	// Minors are the minor versions that do as well as the pinned one.
	Minors []Minor
}

// Components lists everything, in the order in which it is built: what takes
// long comes early, so that the rest feels fast.
func Components(versions controlplane.Versions) ([]Component, error) {
	kubernetes, err := minorOf(versions.Kubernetes)
	if err != nil {
		return nil, err
	}
	kwok, err := minorOf(versions.Kwok)
	if err != nil {
		return nil, err
	}
	pinned, err := controlplane.PinnedVersions()
	if err != nil {
		return nil, err
	}
	ownModule, folder := versions.Kubernetes != pinned.Kubernetes, "./cmd/"
	if ownModule {
		folder = controlplane.KubernetesModule + "/cmd/"
	}
	kubernetesVariables := map[string]string{
		"k8s.io/component-base/version.gitVersion": versions.Kubernetes,
		"k8s.io/component-base/version.gitMajor":   kubernetes.majorText(),
		"k8s.io/component-base/version.gitMinor":   kubernetes.minorText(),
	}
	ofKubernetes := func(name string, versionArgs ...string) Component {
		return Component{
			Name: name, Version: versions.Kubernetes, Package: folder + name, OwnModule: ownModule,
			Variables: kubernetesVariables, VersionArgs: versionArgs, Minors: []Minor{kubernetes},
		}
	}
	return []Component{
		{
			Name: Etcd, Version: versions.Etcd, Package: "./cmd/" + Etcd, VersionArgs: []string{"--version"},
			// Kubernetes 1.36 runs on both.
			Minors: []Minor{{3, 6}, {3, 5}},
		},
		ofKubernetes(APIServer, "--version"),
		ofKubernetes(ControllerManager, "--version"),
		ofKubernetes(Scheduler, "--version"),
		ofKubernetes(Kubectl, "version", "--client"),
		{
			Name: CertManager, Version: versions.CertManager, Package: "./cmd/" + CertManager,
			Variables: map[string]string{controlplane.CertManagerModule + "/pkg/util.AppVersion": versions.CertManager},
		},
		{
			Name: Kwok, Version: versions.Kwok, Package: controlplane.KwokModule + "/cmd/kwok", VersionArgs: []string{"--version"},
			Variables: map[string]string{controlplane.KwokModule + "/pkg/consts.Version": strings.TrimPrefix(versions.Kwok, "v")},
			Minors:    []Minor{kwok},
		},
	}, nil
}
