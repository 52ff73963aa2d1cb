package definition

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

// PublishedMountPort is the port of the MOUNT protocol that Services publish beside NFS, for clients of version 3; 0: none.
func (s Service) PublishedMountPort() uint16 {
	if slices.Contains(s.Versions, 3) {
		return s.MountPort
	}
	return 0
}

// CheckMount reports why a mount with these options would fail: a Service publishes NFS over TCP only, and clients of NFSv3
// ask more than the NFS port: the port mapper (111), the MOUNT protocol, and for locks rpc.statd on both sides and the
// server's lock manager. service is nil if the NFSService is not known. statd: the nodes run rpc.statd. field is the path
// of the options.
//
// Source: mount.nfs of nfs-utils 2.6.2 (stropts.c: nfs_verify_lock_option, nfs_rewrite_pmap_mount_options).
func CheckMount(field string, o options.Options, service *Service, statd bool) nfs.Problems {
	var problems nfs.Problems
	if transport := o.Transport(); service != nil && service.Exposure != nfs.PerNode && transport != "" && !strings.HasPrefix(transport, "tcp") {
		problems.Add(field, "the Services of exposure %s publish NFS over TCP only: remove %s", service.Exposure, transport)
	}
	if version := o.Version(); version != 3 && (version != 0 || service == nil || !slices.Equal(service.Versions, []int32{3})) {
		return problems
	}
	if service == nil || service.Exposure == nfs.PerNode {
		if !o.Has("nolock") && !statd {
			problems.Add(field, "NFSv3 needs rpc.statd on the nodes for its locks, and nfs.statd is off: add nolock, if no two nodes lock the same file; or mount with vers=4.1; or run rpc.statd and set nfs.statd: on")
		}
		return problems
	}
	if !o.Has("nolock") {
		problems.Add(field, "the Services of exposure %s do not publish the ports of NFSv3's locks: add nolock, if no two nodes lock the same file; or mount with vers=4.1; or use exposure %s", service.Exposure, nfs.PerNode)
	}
	switch published, asked := service.PublishedMountPort(), o.Value("mountport"); {
	case published == 0:
		problems.Add(field, "NFSv3 clients ask the servers' port mapper and mountd, which the Services of exposure %s do not publish: give mountd a fixed port, write it into spec.health.mountPort of the NFSService, and 3 into spec.versions; or mount with vers=4.1; or use exposure %s", service.Exposure, nfs.PerNode)
	case asked != "" && asked != strconv.Itoa(int(published)):
		problems.Add(field, "mountport=%s is not spec.health.mountPort of the NFSService, %d: remove the option", asked, published)
	}
	return problems
}
