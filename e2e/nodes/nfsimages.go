//go:build linux

package nodes

import (
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

const (
	csiNodeImage   = "ghcr.io/fairlead-io/fairlead-csi-node:dev"
	nfsServerImage = "fairlead.test/nfs-server:1"
)

// nfsShare is exported by all servers: the nodes' shared folder, with the same handles.
const nfsShare = "/exports/data"

const ganeshaConfiguration = `
NFS_Core_Param { Protocols = 3, 4; mount_path_pseudo = true; MNT_Port = 20048; Enable_UDP = false; Enable_NLM = false; Enable_RQUOTA = false; }
NFSV4 { Graceless = true; Lease_Lifetime = 20; Minor_Versions = 1, 2; RecoveryBackend = fs; Only_Numeric_Owners = true; }
EXPORT {
	Export_Id = 1; Path = /exports/data; Pseudo = /exports/data; Filesystem_id = 1.0; Protocols = 3, 4; Transports = TCP;
	Access_Type = RW; Squash = None; SecType = sys; FSAL { Name = VFS; }
}
`

// runGanesha starts the port mapper too, which ganesha needs for NFSv3.
const runGanesha = `#!/bin/sh
echo _rpc:x:100:65534::/run/rpcbind:/bin/false >> /etc/passwd
mkdir -p /run/rpcbind /var/lib/nfs/ganesha
rpcbind -w && exec ganesha.nfsd -F -L /dev/stderr -p /run/ganesha.pid -f /etc/ganesha/ganesha.conf
`

// nfsImages are the node plugin's image, as the Dockerfile makes it but for the NFS client, and NFS-Ganesha's.
func (c *Cluster) nfsImages() []image.Image {
	return []image.Image{
		{
			Name: csiNodeImage,
			Files: map[string]string{
				"/fairlead":       filepath.Join(filepath.Dir(c.Image), "fairlead-linux-amd64"),
				"/sbin/mount.nfs": c.programs.NFSMount,
			},
			Links:      map[string]string{"/sbin/mount.nfs4": "mount.nfs"},
			Programs:   []string{"mount", "umount"},
			Entrypoint: []string{"/fairlead"},
		},
		{
			Name: nfsServerImage,
			Files: map[string]string{
				ganeshaPlugins:   ganeshaPlugins,
				idMapperPlugins:  idMapperPlugins,
				"/etc/netconfig": "/etc/netconfig", "/etc/protocols": "/etc/protocols", "/etc/services": "/etc/services",
				"/etc/idmapd.conf": "/etc/idmapd.conf",
			},
			Texts:      map[string]string{"/etc/ganesha/ganesha.conf": ganeshaConfiguration, "/server": runGanesha},
			Programs:   []string{"ganesha.nfsd", "rpcbind"},
			Entrypoint: []string{"/server"},
		},
	}
}
