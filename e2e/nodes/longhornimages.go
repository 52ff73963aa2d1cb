package nodes

import (
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

func longhornImages(pods, manager string) []image.Image {
	return []image.Image{{
		Name: "docker.io/longhornio/longhorn-manager:v1.7.2", Files: map[string]string{"/usr/local/sbin/longhorn-manager": filepath.Join(manager, "longhorn-manager")},
		Programs: []string{"nsenter", "mount", "umount", "mkfs.ext4", "blkid", "curl", "mountpoint"},
	}, {Name: "docker.io/longhornio/longhorn-share-manager:v1.7.2"}}
}
