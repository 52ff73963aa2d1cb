package nodes

import (
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

// sidecarImages are the CSI sidecars of Longhorn's driver deployer, by their names in longhorn.yaml. All but csi-resizer are
// newer than their tags: go.mod has their versions. Without the CRDs of snapshots, csi-snapshotter waits, and says so.
// folder has the set csisidecars; attacher is the program csi-attacher of the set longhorn.
func sidecarImages(folder, attacher string) []image.Image {
	sidecar := func(name, program string) image.Image {
		entrypoint := "/" + filepath.Base(program)
		return image.Image{
			Name:       "docker.io/longhornio/" + name,
			Files:      map[string]string{entrypoint: program},
			Entrypoint: []string{entrypoint},
		}
	}
	return []image.Image{
		sidecar("csi-attacher:v4.7.0", attacher),
		sidecar("csi-provisioner:v4.0.1-20241007", filepath.Join(folder, "csi-provisioner")),
		sidecar("csi-resizer:v1.12.0", filepath.Join(folder, "csi-resizer")),
		sidecar("csi-snapshotter:v7.0.2-20241007", filepath.Join(folder, "csi-snapshotter")),
		sidecar("csi-node-driver-registrar:v2.12.0", filepath.Join(folder, "node-driver-registrar")),
		sidecar("livenessprobe:v2.14.0", filepath.Join(folder, "livenessprobe")),
	}
}
