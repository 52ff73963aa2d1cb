package nodes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

// csiAddonsVersion is that of e2e/csiaddons.
const csiAddonsVersion = "v0.14.0"

// csiAddonsImages are the images of csi-addons. folder has the set csiaddons.
func csiAddonsImages(folder string) []image.Image {
	return []image.Image{
		{
			Name:       "quay.io/csiaddons/k8s-controller:" + csiAddonsVersion,
			Files:      map[string]string{"/csi-addons-manager": filepath.Join(folder, "manager")},
			Entrypoint: []string{"/csi-addons-manager"},
		},
		{
			Name:       "quay.io/csiaddons/k8s-sidecar:" + csiAddonsVersion,
			Files:      map[string]string{"/usr/sbin/csi-addons-sidecar": filepath.Join(folder, "pods", "sidecar")},
			Entrypoint: []string{"/usr/sbin/csi-addons-sidecar"},
		},
	}
}

// csiAddonsManifest is csi-addons' own, for its manager. The image is one that is not pulled; it says no user, and the
// Deployment wants one that is not root.
func csiAddonsManifest(folder string) (string, error) {
	var parts []string
	for _, name := range []string{"setup-controller.yaml", "rbac.yaml"} {
		text, err := os.ReadFile(filepath.Join(folder, "controller", name))
		if err != nil {
			return "", fmt.Errorf("reading csi-addons' manifest: %w", err)
		}
		parts = append(parts, string(text))
	}
	return strings.NewReplacer(
		"k8s-controller:latest", "k8s-controller:"+csiAddonsVersion,
		"runAsNonRoot: true", "{runAsNonRoot: true, runAsUser: 65532}",
	).Replace(strings.Join(parts, "---\n")), nil
}
