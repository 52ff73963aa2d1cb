package nodes

import (
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

// mountPrograms make, check, mount and grow ext4 for k8s.io/mount-utils.
var mountPrograms = []string{
	"bash", "nsenter", "mount", "umount", "blkid", "blockdev", "findmnt", "fstrim",
	"mkfs.ext4", "fsck", "fsck.ext4", "e2fsck", "resize2fs", "dumpe2fs", "tune2fs",
}

// Debian's folders of plugins on amd64.
const (
	ganeshaPlugins  = "/usr/lib/x86_64-linux-gnu/ganesha"
	idMapperPlugins = "/usr/lib/x86_64-linux-gnu/libnfsidmap"
)

// ganesha keeps the names of clients in the volume, so that the next server knows for which clients to wait. Longhorn's
// own recovery backend, which Debian's nfs-ganesha lacks, keeps them at longhorn-manager.
const ganesha = `#!/bin/sh
for configuration; do :; done
volume=$(sed -n 's/^[[:space:]]*Path = \(.*\);/\1/p' "$configuration")
mkdir -p "$volume/lost+found"
sed -i "s,RecoveryBackend = longhorn;,RecoveryBackend = fs; RecoveryRoot = \"$volume/lost+found\";," "$configuration"
exec /usr/bin/ganesha.nfsd "$@"
`

// longhornImages are Longhorn's images by their own names, of the folders where its programs were built. They have the
// entry points and scripts of Longhorn's Dockerfiles, Debian's programs in place of SUSE's, and no tgtd.
func longhornImages(pods, manager, nfsmount string) []image.Image {
	name := func(name string) string { return "docker.io/longhornio/" + name + ":v1.7.2" }
	// A shell of busybox prefers busybox' own nc and mount.
	shell := map[string]string{"/bin/sh": "bash"}
	files := func(files map[string]string) map[string]string {
		files["/etc/mke2fs.conf"] = "/etc/mke2fs.conf"
		return files
	}
	return []image.Image{
		{
			Name: name("longhorn-manager"),
			Files: files(map[string]string{
				"/usr/local/sbin/longhorn-manager": filepath.Join(manager, "longhorn-manager"),
				"/sbin/mount.nfs":                  nfsmount,
				"/usr/local/sbin/nsmounter":        filepath.Join(manager, "nsmounter"),
			}),
			Texts:    map[string]string{"/usr/bin/kmod": "#!/bin/sh\nexec lsmod\n"}, // asked for the modules of a node's kernel
			Links:    shell,
			Programs: append([]string{"curl"}, mountPrograms...),
			Cmd:      []string{"longhorn-manager"},
		},
		{
			Name:     name("longhorn-engine"),
			Files:    map[string]string{"/usr/local/bin/longhorn": filepath.Join(pods, "longhorn-engine")},
			Links:    shell,
			Programs: []string{"bash"},
			Cmd:      []string{"longhorn"},
		},
		{
			Name: name("longhorn-instance-manager"),
			Files: files(map[string]string{
				"/usr/local/bin/instance-manager":          filepath.Join(pods, "instance-manager"),
				"/usr/local/bin/longhorn-instance-manager": filepath.Join(pods, "longhorn-instance-manager"),
				"/usr/local/bin/grpc_health_probe":         filepath.Join(pods, "grpc_health_probe"),
			}),
			Texts: map[string]string{
				"/usr/local/bin/tgtd": "#!/bin/sh\necho the engine serves its device itself\n",
				// The liveness probe: nc -zv localhost PORT.
				"/usr/bin/nc": "#!/bin/bash\nexec 3<>/dev/tcp/$2/$3\n",
				// The host's folder is mounted on the folder of this file.
				"/lib/modules/placeholder": "",
			},
			Links:    shell,
			Programs: append([]string{"fsfreeze"}, mountPrograms...),
		},
		{
			Name: name("longhorn-share-manager"),
			Files: files(map[string]string{
				"/longhorn-share-manager": filepath.Join(pods, "longhorn-share-manager"),
				ganeshaPlugins:            ganeshaPlugins,
				idMapperPlugins:           idMapperPlugins,
				"/etc/idmapd.conf":        "/etc/idmapd.conf",
				"/etc/netconfig":          "/etc/netconfig",
				"/etc/protocols":          "/etc/protocols",
				"/etc/services":           "/etc/services",
			}),
			Texts:      map[string]string{"/usr/local/bin/ganesha.nfsd": ganesha, "/export/placeholder": ""},
			Links:      shell,
			Programs:   append([]string{"/usr/bin/ganesha.nfsd"}, mountPrograms...),
			Entrypoint: []string{"/longhorn-share-manager"},
		},
	}
}
