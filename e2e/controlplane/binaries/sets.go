package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
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

// controlPlane has what takes long early, so that the rest feels fast.
func controlPlane(versions controlplane.Versions) (set, error) {
	pinned, err := controlplane.PinnedVersions()
	if err != nil {
		return set{}, err
	}
	program := func(name, version, ldflags, of string) step {
		return step{"building " + name + " " + version, []string{filepath.Join("bin", name)}, func(ctx context.Context, b building) error {
			if path, found := installed(ctx, name, version, searchPath(os.Getenv)); found {
				b.report.Printf("using %s, which need not be built", path)
				return b.link(path, filepath.Join("bin", name))
			}
			return b.compile(ctx, ".", "bin", ldflags, of)
		}}
	}
	s := set{name: "controlplane", takes: "minutes", steps: []step{program(Etcd, versions.Etcd, "", "./cmd/"+Etcd)}}
	for _, name := range []string{APIServer, ControllerManager, Scheduler, Kubectl} {
		build := program(name, versions.Kubernetes, kubernetesVersion(versions.Kubernetes), "./cmd/"+name)
		if versions.Kubernetes != pinned.Kubernetes {
			build.do = func(ctx context.Context, b building) error { return buildOtherKubernetes(ctx, b, name) }
		}
		s.steps = append(s.steps, build)
	}
	s.steps = append(s.steps,
		program(CertManager, versions.CertManager, "-X="+controlplane.CertManagerModule+"/pkg/util.AppVersion="+versions.CertManager, "./cmd/"+CertManager),
		program(Kwok, versions.Kwok, "-X="+controlplane.KwokModule+"/pkg/consts.Version="+strings.TrimPrefix(versions.Kwok, "v"), controlplane.KwokModule+"/cmd/kwok"),
		step{"fetching CRDs and stages", []string{manifestsFolder}, func(ctx context.Context, b building) error {
			return manifests.Fetch(ctx, b.source, filepath.Join(b.into, manifestsFolder))
		}})
	return s, nil
}

// kubernetesVersion sets the version that Kubernetes' programs report.
func kubernetesVersion(version string) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	flags := ""
	for name, value := range map[string]string{"gitVersion": version, "gitMajor": parts[0], "gitMinor": parts[1]} {
		flags += " -X=k8s.io/component-base/version." + name + "=" + value
	}
	return flags
}

const (
	coreDNSModule   = "github.com/coredns/coredns"
	csiAddonsModule = "github.com/csi-addons/kubernetes-csi-addons"
	longhornModule  = "github.com/longhorn/longhorn-manager"
	attacherPackage = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
	multusPackage   = "gopkg.in/k8snetworkplumbingwg/multus-cni.v4/cmd/multus"
	cniPlugins      = "github.com/containernetworking/plugins/plugins"

	provisionerModule  = "github.com/kubernetes-csi/external-provisioner/v6"
	snapshotterPackage = "github.com/kubernetes-csi/external-snapshotter/v8/cmd/csi-snapshotter"
	resizerPackage     = "github.com/kubernetes-csi/external-resizer/cmd/csi-resizer"

	engineModule          = "github.com/longhorn/longhorn-engine"
	instanceManagerModule = "github.com/longhorn/longhorn-instance-manager"
	shareManagerModule    = "github.com/longhorn/longhorn-share-manager"
)

var addons = []set{
	{
		name: "nodeprograms", takes: "five minutes", module: controlplane.KubernetesModule,
		sources: []string{"go.mod", "*/main.go"},
		steps: []step{
			{"building kubelet and kube-proxy", []string{"kubelet", "kube-proxy"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "", kubernetesVersion(b.version), "./kubelet", "./kube-proxy")
			}},
			{"building Multus and CNI plugins", []string{"cni"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "cni", "", multusPackage, cniPlugins+"/main/ptp", cniPlugins+"/main/macvlan", cniPlugins+"/main/loopback",
					cniPlugins+"/meta/portmap", cniPlugins+"/ipam/host-local", cniPlugins+"/ipam/static")
			}},
		},
	},
	{
		name: "coredns", takes: "a minute or two", module: coreDNSModule,
		sources: []string{"go.mod", "main.go"},
		steps: []step{{"building CoreDNS", []string{"coredns"}, func(ctx context.Context, b building) error {
			return b.compile(ctx, ".", "", "", ".")
		}}},
	},
	{
		name: "csiaddons", takes: "a few minutes", module: csiAddonsModule,
		sources: []string{"go.mod", "endpoint/*.go"}, recipe: "1",
		steps: []step{
			{"building the manager of csi-addons, and our endpoint", []string{"manager", "endpoint"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "", "", csiAddonsModule+"/cmd/manager", "./endpoint")
			}},
			{"building the sidecar of csi-addons", []string{"sidecar"}, buildSidecar},
			{"building the same unchanged, for pods", []string{"pods/sidecar"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "pods", "", csiAddonsModule+"/sidecar")
			}},
			{"copying the CRDs of csi-addons", []string{"crds"}, func(ctx context.Context, b building) error {
				return b.copyFromModule(ctx, csiAddonsModule, "config/crd/bases", "crds")
			}},
			{"copying the manifests of csi-addons", []string{"controller"}, func(ctx context.Context, b building) error {
				return b.copyFromModule(ctx, csiAddonsModule, "deploy/controller", "controller")
			}},
		},
	},
	{
		name: "longhorn", folder: "longhorn/instances", takes: "six minutes", module: longhornModule,
		sources: []string{"go.mod", "../attacher/go.mod", "*.go", "spdk/*/*/*.go"}, recipe: "2",
		steps: []step{
			{"building longhorn-manager, and what answers for its pods", []string{"longhorn-manager", "instances"}, buildLonghornManager},
			{"building csi-attacher", []string{"csi-attacher"}, func(ctx context.Context, b building) error {
				// It has a module of its own: it needs another version of Kubernetes' libraries.
				return b.compile(ctx, "../attacher", "", "", attacherPackage)
			}},
			{"copying the CRDs of Longhorn", []string{"crds.yaml"}, copyLonghornCRDs},
			{"copying the script that mounts on the host", []string{"nsmounter"}, func(ctx context.Context, b building) error {
				return b.copyScript(ctx, longhornModule, "nsmounter")
			}},
		},
	},
	{
		name: "csisidecars", takes: "four minutes", module: provisionerModule,
		sources: []string{"go.mod", "resizer/go.mod", "node-driver-registrar/*.go", "livenessprobe/*.go"},
		steps: []step{
			{"building csi-provisioner and csi-snapshotter", []string{"csi-provisioner", "csi-snapshotter"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "", "", provisionerModule+"/cmd/csi-provisioner", snapshotterPackage)
			}},
			{"building node-driver-registrar and livenessprobe", []string{"node-driver-registrar", "livenessprobe"}, func(ctx context.Context, b building) error {
				return b.compile(ctx, ".", "", "", "./node-driver-registrar", "./livenessprobe")
			}},
			{"building csi-resizer", []string{"csi-resizer"}, func(ctx context.Context, b building) error {
				// It has a module of its own: it needs older libraries of Kubernetes.
				return b.compile(ctx, "resizer", "", "", resizerPackage)
			}},
		},
	},
	{
		name: "longhornpods", takes: "a few minutes", module: engineModule,
		sources: []string{"go.mod", "*/*.go", "*/go.mod", "*/*/*.go", "*/*/*/*.go"}, recipe: "1",
		steps: []step{
			{
				"building longhorn-engine, longhorn-instance-manager and longhorn-share-manager",
				[]string{"longhorn-engine", "longhorn-instance-manager", "longhorn-share-manager", "grpc_health_probe"}, buildLonghornPods,
			},
			{"copying the script that starts an instance manager", []string{"instance-manager"}, func(ctx context.Context, b building) error {
				return b.copyScript(ctx, instanceManagerModule, "instance-manager")
			}},
		},
	},
}

// buildLonghornPods builds Longhorn's programs. The engine's C package for qcow2 images is replaced.
func buildLonghornPods(ctx context.Context, b building) error {
	modfile, err := b.changeModule(ctx, engineModule, func(engine string) error {
		ours, err := os.ReadFile(filepath.Join(b.source, "qcow", "qcow.go"))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(engine, "pkg", "qcow", "libqcow.go"), ours, 0o644)
	})
	if err != nil {
		return err
	}
	return b.compile(ctx, ".", "", "-X main.Version="+b.version, "-modfile="+modfile,
		engineModule, instanceManagerModule, shareManagerModule, "./grpc_health_probe")
}

// copyScript copies a script that a Dockerfile of Longhorn puts into an image: files of modules are not executable.
func (b building) copyScript(ctx context.Context, module, name string) error {
	if err := b.copyFromModule(ctx, module, "package/"+name, name); err != nil {
		return err
	}
	return os.Chmod(filepath.Join(b.into, name), 0o755)
}

// outsideACluster is all that is changed in csi-addons: its sidecar reads the API
// server's address and its token from where a kubelet puts them, and nowhere
// else, and listens on every address of the machine. Here it takes --kubeconfig,
// a flag that it has anyway, and the loopback.
var outsideACluster = []struct{ from, to string }{
	{"\t\"k8s.io/client-go/rest\"\n", ""},
	{"rest.InClusterConfig()", "ctrl.GetConfig()"},
	{"server.NewSidecarServer(*controllerIP,", `server.NewSidecarServer("127.0.0.1",`},
}

// buildSidecar builds the sidecar of csi-addons with a changed main.
func buildSidecar(ctx context.Context, b building) error {
	modfile, err := b.changeModule(ctx, csiAddonsModule, func(source string) error {
		main := filepath.Join(source, "sidecar", "main.go")
		content, err := os.ReadFile(main)
		if err != nil {
			return fmt.Errorf("reading the sidecar's main: %w", err)
		}
		text := string(content)
		for _, change := range outsideACluster {
			if n := strings.Count(text, change.from); n != 1 {
				return fmt.Errorf("the sidecar's main has %q %d times, not once: see what has become of it", change.from, n)
			}
			text = strings.Replace(text, change.from, change.to, 1)
		}
		return os.WriteFile(main, []byte(text), 0o644)
	})
	if err != nil {
		return err
	}
	return b.compile(ctx, ".", "", "", "-modfile="+modfile, csiAddonsModule+"/sidecar")
}

// changeModule copies a required module, changes the copy, and returns a go.mod file that names the copy.
func (b building) changeModule(ctx context.Context, module string, change func(folder string) error) (modfile string, err error) {
	source, err := manifests.DownloadedFolder(ctx, module, b.source)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(b.temporary, "source")
	if err := os.CopyFS(changed, os.DirFS(source)); err != nil {
		return "", fmt.Errorf("copying %s: %w", module, err)
	}
	if err := change(changed); err != nil {
		return "", fmt.Errorf("changing %s: %w", module, err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(b.source, name))
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(b.temporary, name), content, 0o644); err != nil {
			return "", fmt.Errorf("writing %s: %w", name, err)
		}
	}
	modfile = filepath.Join(b.temporary, "go.mod")
	return modfile, runGo(ctx, b.source, "mod", "edit", "-replace="+module+"="+changed, modfile)
}
