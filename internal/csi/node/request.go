package node

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// request is a NodePublishVolume that is valid.
type request struct {
	target, source string
	// options for mount(8).
	options     []string
	readOnly    bool
	readAheadKB *int
	// mode to set on the mounted directory; 0: unchanged.
	mode uint32
}

// parse validates all of a request. Nothing is mounted yet.
func parse(driver, kubeletDir string, req *csi.NodePublishVolumeRequest) (*request, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume_id")
	}
	r := &request{target: req.GetTargetPath()}
	if err := checkPath("target_path", r.target, kubeletDir); err != nil {
		return nil, err
	}
	if err := CheckCapability(req.GetVolumeCapability()); err != nil {
		return nil, err
	}
	v, problems := volume.Read("volumeAttributes", req.GetVolumeContext(), "mountOptions", req.GetVolumeCapability().GetMount().GetMountFlags())
	if err := problems.Err(); err != nil {
		return nil, invalid("%s", err)
	}
	r.mode = v.Permissions
	key := fairleadcsi.AddressKey(driver)
	text, ok := req.GetPublishContext()[key]
	if !ok {
		return nil, invalid("publish_context has no %s: the CSIDriver needs attachRequired: true, and Fairlead's attacher must run", key)
	}
	server, err := nfs.ParseEndpoint(text, nfs.DefaultPort)
	if err != nil {
		return nil, invalid("publish_context[%s]: %s", key, err)
	}
	mount, problems := v.Options.ForServer("mountOptions", server.Port())
	if err := problems.Err(); err != nil {
		return nil, invalid("%s", err)
	}
	// The access mode decides nothing: of several, the kubelet sends the first. Kubernetes enforces none of them either.
	if req.GetReadonly() && !slices.Contains(mount, "ro") {
		mount = append(slices.DeleteFunc(mount, func(o string) bool { return o == "rw" }), "ro")
	}
	r.readOnly = slices.Contains(mount, "ro")
	r.options, r.readAheadKB = mount, v.Options.ReadAheadKB
	r.source = options.Source(server.Addr(), v.Share, v.SubDir)
	return r, nil
}

// CheckCapability refuses capabilities that an NFS share does not have. The type of the file system is ignored, as the GKE
// driver and csi-driver-nfs do.
func CheckCapability(c *csi.VolumeCapability) error {
	mode := c.GetAccessMode().GetMode()
	_, known := csi.VolumeCapability_AccessMode_Mode_name[int32(mode)]
	switch {
	case c == nil:
		return invalid("the request has no volume_capability")
	case c.GetAccessType() == nil:
		return invalid("the request has no volume_capability.access_type")
	case mode == csi.VolumeCapability_AccessMode_UNKNOWN:
		return invalid("the request has no volume_capability.access_mode")
	case c.GetBlock() != nil:
		return status.Error(codes.FailedPrecondition, "an NFS share is no block device: set volumeMode: Filesystem")
	case !known:
		return status.Errorf(codes.FailedPrecondition, "access mode %d is not known: use one of the CSI spec v1.12.0", mode)
	}
	return nil
}

// checkPath refuses paths that no kubelet sends.
func checkPath(field, path, kubeletDir string) error {
	switch {
	case path == "":
		return invalid("the request has no %s", field)
	case !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsAny(path, "\x00\n"):
		return invalid("%s %q is no clean absolute path", field, path)
	case kubeletDir != "" && !strings.HasPrefix(path, strings.TrimSuffix(kubeletDir, "/")+"/"):
		return invalid("%s %q is not below %s: set --kubelet-dir to the kubelet's --root-dir", field, path, kubeletDir)
	}
	return nil
}
