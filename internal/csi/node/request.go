package node

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fairleadcsi "github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/csi/capability"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

// request is a NodePublishVolume that is valid.
type request struct {
	target, source string
	// options for mount(8).
	options     []string
	readOnly    bool
	readAheadKB *int
	// mode of the mounted directory; 0 leaves it as the server has it.
	mode uint32
}

// parse validates all of a request. Nothing is mounted yet.
func parse(driver, kubeletDir string, req *csi.NodePublishVolumeRequest) (*request, error) {
	if req.GetVolumeCapability() == nil {
		return nil, invalid("the request has no volume_capability")
	}
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume_id")
	}
	r := &request{target: req.GetTargetPath()}
	if err := checkPath("target_path", r.target, kubeletDir); err != nil {
		return nil, err
	}
	if err := capability.Check(req.GetVolumeCapability()); err != nil {
		if errors.As(err, &capability.MissingError{}) {
			return nil, invalid("%s", err)
		}
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	r.readOnly = req.GetReadonly() || capability.ReadOnly(req.GetVolumeCapability())
	attributes, err := parseAttributes(req.GetVolumeContext())
	if err != nil {
		return nil, err
	}
	r.mode = attributes.mode
	key := fairleadcsi.AddressKey(driver)
	text, ok := req.GetPublishContext()[key]
	if !ok {
		return nil, invalid("publish_context has no %s: the CSIDriver needs attachRequired: true, and Fairlead's attacher must run", key)
	}
	server, err := nfs.ParseEndpoint(text, nfs.DefaultPort)
	if err != nil {
		return nil, invalid("publish_context[%s]: %s", key, err)
	}
	flags := append(slices.Clone(req.GetVolumeCapability().GetMount().GetMountFlags()), attributes.mountOptions...)
	parsed, problems := options.Parse("mountOptions", flags)
	mount, more := parsed.ForServer("mountOptions", server.Port())
	if err := append(problems, more...).Err(); err != nil {
		return nil, invalid("%s", err)
	}
	if r.readOnly && !slices.Contains(mount, "ro") {
		mount = append(slices.DeleteFunc(mount, func(o string) bool { return o == "rw" }), "ro")
	}
	r.readOnly = slices.Contains(mount, "ro")
	r.options, r.readAheadKB = mount, parsed.ReadAheadKB
	r.source = options.Source(server.Addr(), attributes.share, attributes.subDir)
	return r, nil
}

type attributes struct {
	share, subDir string
	mountOptions  []string
	mode          uint32
}

// Keys of the volume's names, as csi-provisioner writes them with --extra-create-metadata.
var nameKeys = map[string]string{
	"csi.storage.k8s.io/pvc/name": options.VariablePVCName, "csi.storage.k8s.io/pvc/namespace": options.VariablePVCNamespace,
	"csi.storage.k8s.io/pv/name": options.VariablePVName,
}

// parseAttributes reads the volumeAttributes of a PersistentVolume. Their names may be
// in any case, as the GKE driver takes them.
func parseAttributes(context map[string]string) (attributes, error) {
	var a attributes
	values, seen := map[string]string{}, map[string]string{}
	for key, value := range context {
		if variable, ok := nameKeys[key]; ok {
			values[variable] = value
		}
		name := strings.ToLower(key)
		if other, ok := seen[name]; ok {
			return a, invalid("volumeAttributes has both %s and %s: remove one of them", min(key, other), max(key, other))
		}
		seen[name] = key
	}
	get := func(name string) string { return context[seen[name]] }
	var err error
	if a.share, err = options.ParseShare(get("share")); err != nil {
		return a, invalid("volumeAttributes.share: %s", err)
	}
	if a.subDir, err = options.ParseSubDir(get("subdir"), values); err != nil {
		return a, invalid("volumeAttributes.subdir: %s", err)
	}
	if text := get("mountoptions"); text != "" {
		a.mountOptions = []string{text}
	}
	if text := get("mountpermissions"); text != "" {
		mode, err := strconv.ParseUint(text, 8, 32)
		if err != nil || mode > 0o7777 {
			return a, invalid("volumeAttributes.mountPermissions: %q is no octal mode: write 0 to leave the directory as it is, or up to 7777", text)
		}
		a.mode = uint32(mode)
	}
	return a, nil
}

// checkPath refuses what no kubelet asks for.
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
