package binaries

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/controlplane/manifests"
)

const (
	coreDNSModule   = "github.com/coredns/coredns"
	csiAddonsModule = "github.com/csi-addons/kubernetes-csi-addons"
	longhornModule  = "github.com/longhorn/longhorn-manager"
	attacherPackage = "github.com/kubernetes-csi/external-attacher/v4/cmd/csi-attacher"
)

var addons = []addon{
	{
		name: "coredns", takes: "a minute or two", module: coreDNSModule,
		sources: []string{"go.mod", "main.go"},
		steps: []step{{"building CoreDNS", func(ctx context.Context, b addonBuild) error {
			return b.compile(ctx, ".", stripped, ".")
		}}},
	},
	{
		name: "csiaddons", takes: "a few minutes", module: csiAddonsModule,
		sources: []string{"go.mod", "endpoint/*.go"}, recipe: "1",
		steps: []step{
			{"building the manager of csi-addons, and our endpoint", func(ctx context.Context, b addonBuild) error {
				return b.compile(ctx, ".", stripped, csiAddonsModule+"/cmd/manager", "./endpoint")
			}},
			{"building the sidecar of csi-addons", buildSidecar},
			{"copying the CRDs of csi-addons", func(ctx context.Context, b addonBuild) error {
				return b.copyFromModule(ctx, csiAddonsModule, "config/crd/bases", "crds")
			}},
		},
	},
	{
		name: "longhorn", takes: "six minutes", module: longhornModule,
		sources: []string{"go.mod", "attacher/go.mod", "instances/*.go"}, recipe: "1",
		steps: []step{
			{"building longhorn-manager, and what answers for its pods", func(ctx context.Context, b addonBuild) error {
				// The manager asks its own version, which Longhorn's build sets in this way.
				return b.compile(ctx, ".", stripped+" -X "+longhornModule+"/meta.Version="+b.version, longhornModule, "./instances")
			}},
			{"building csi-attacher", func(ctx context.Context, b addonBuild) error {
				// It has a module of its own: it needs another version of Kubernetes' libraries.
				return b.compile(ctx, "attacher", stripped, attacherPackage)
			}},
			{"copying the CRDs of Longhorn", func(ctx context.Context, b addonBuild) error {
				return b.copyFromModule(ctx, longhornModule, "k8s/crds.yaml", "crds.yaml")
			}},
		},
	},
}

const stripped = "-s -w"

// addonBuild is where an addon is built.
type addonBuild struct {
	// source is the addon's module; into becomes its folder in the cache; temporary is removed after the build.
	source, into, temporary string
	version                 string
}

// compile builds main packages of the module in a folder. Each program is named by the last part of its package's path.
func (b addonBuild) compile(ctx context.Context, folder, ldflags string, packages ...string) error {
	args := []string{"build", "-trimpath", "-ldflags", ldflags, "-o", b.into + string(filepath.Separator)}
	return runGo(ctx, filepath.Join(b.source, folder), append(args, packages...)...)
}

// copyFromModule copies a file or folder of a required module.
func (b addonBuild) copyFromModule(ctx context.Context, module, from, to string) error {
	folder, err := manifests.DownloadedFolder(ctx, module, b.source)
	if err != nil {
		return err
	}
	from, to = filepath.Join(folder, from), filepath.Join(b.into, to)
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
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

// buildSidecar copies csi-addons, changes its sidecar's main, and builds the sidecar with a go.mod that names the copy.
func buildSidecar(ctx context.Context, b addonBuild) error {
	source, err := manifests.DownloadedFolder(ctx, csiAddonsModule, b.source)
	if err != nil {
		return err
	}
	changed := filepath.Join(b.temporary, "source")
	if err := os.CopyFS(changed, os.DirFS(source)); err != nil {
		return fmt.Errorf("copying csi-addons: %w", err)
	}
	main := filepath.Join(changed, "sidecar", "main.go")
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
	if err := os.WriteFile(main, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the sidecar's main: %w", err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(b.source, name))
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(b.temporary, name), content, 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	modfile := filepath.Join(b.temporary, "go.mod")
	if err := runGo(ctx, b.source, "mod", "edit", "-replace="+csiAddonsModule+"="+changed, modfile); err != nil {
		return err
	}
	return b.compile(ctx, ".", stripped, "-modfile="+modfile, csiAddonsModule+"/sidecar")
}
