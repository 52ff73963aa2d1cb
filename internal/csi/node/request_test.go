package node

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

func capable(mode csi.VolumeCapability_AccessMode_Mode) func(*csi.NodePublishVolumeRequest) {
	return func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessMode.Mode = mode }
}

// The GKE driver finds some of it after mounting, or never: "..", read_ahead_kb beside
// another option, IPv6 without brackets.
func TestInvalidRequestMountsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*csi.NodePublishVolumeRequest)
		text   string
	}{
		"no volume":          {func(r *csi.NodePublishVolumeRequest) { r.VolumeId = "" }, "no volume_id"},
		"no target":          {func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "" }, "no target_path"},
		"relative target":    {func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "a" }, "clean absolute"},
		"target leads up":    {func(r *csi.NodePublishVolumeRequest) { r.TargetPath += "/../../x" }, "clean absolute"},
		"target elsewhere":   {func(r *csi.NodePublishVolumeRequest) { r.TargetPath = "/etc" }, "--kubelet-dir"},
		"no capability":      {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability = nil }, "no volume_capability"},
		"no access type":     {func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.AccessType = nil }, "access_type"},
		"no access mode":     {capable(csi.VolumeCapability_AccessMode_UNKNOWN), "access_mode"},
		"no share":           {func(r *csi.NodePublishVolumeRequest) { r.VolumeContext = nil }, "share is empty"},
		"variable unknown":   {attribute("subdir", "${pvc.metadata.name}"), "no name of a directory"},
		"no address":         {func(r *csi.NodePublishVolumeRequest) { r.PublishContext = nil }, "attachRequired"},
		"address of a blank": {address(" 10.0.0.1"), "not an IP"},
		"loopback address":   {address("127.0.0.1"), "loopback"},
		"other address":      {flags("addr=10.0.0.7"), "not allowed"},
		"shared propagation": {flags("rshared"), "not allowed"},
		"a loop device":      {flags("loop"), "not allowed"},
		"a mount helper":     {flags("helper=x"), "not allowed"},
		"subdir of mount(8)": {flags("X-mount.subdir=../.."), "not allowed"},
		"allowed by sloppy":  {flags("sloppy,private"), "not allowed"},
		"other port":         {flags("port=2050"), "not the port"},
		"mode not octal":     {attribute("mountPermissions", "0789"), "octal"},
	} {
		b := newBed(t)
		b.fails(b.publish(c.change), codes.InvalidArgument, c.text)
		b.did()
		if exists(b.target("mount")) || t.Failed() {
			t.Fatal(name)
		}
	}
}

// The GKE driver mounts a directory where a block device was asked for.
func TestBlockVolumeIsRefused(t *testing.T) {
	b := newBed(t)
	b.fails(b.publish(func(r *csi.NodePublishVolumeRequest) {
		r.VolumeCapability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}), codes.FailedPrecondition, "volumeMode: Filesystem")
	b.did()
}

// Both other NFS drivers ignore it.
func TestTypeOfFileSystemIsIgnored(t *testing.T) {
	b := newBed(t)
	b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().FsType = "ext4" }))
}

// The kubelet sends the first access mode of a PersistentVolume only (pkg/volume/csi/csi_mounter.go), so ReadOnlyMany
// beside ReadWriteMany looks like ReadOnlyMany alone.
func TestAccessModeMakesNoMountReadOnly(t *testing.T) {
	for mode := range csi.VolumeCapability_AccessMode_Mode_name {
		if mode == 0 {
			continue
		}
		b := newBed(t)
		b.must(b.publish(capable(csi.VolumeCapability_AccessMode_Mode(mode))))
		b.did(mounting)
	}
	b := newBed(t)
	b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.Readonly = true }))
	b.did("mount 10.0.0.1:/exports [vers=3 hard port=2049 ro]")
}

func TestNodeInfoHasName(t *testing.T) {
	b := newBed(t)
	info, err := b.NodeGetInfo(context.Background(), nil)
	b.must(err)
	if info.GetNodeId() != "node-1" || info.GetAccessibleTopology() != nil {
		t.Errorf("%v", info)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("/exports", "${pv.metadata.name}", "10.0.0.1:2050", "vers=3,read_ahead_kb=4", "0777", "mount")
	f.Fuzz(func(t *testing.T, share, subDir, server, option, mode, target string) {
		r, err := parse(driver, "/k", &csi.NodePublishVolumeRequest{
			VolumeId: "v", TargetPath: "/k/" + target, PublishContext: map[string]string{driver + "/assigned-ip": server},
			VolumeContext: map[string]string{"share": share, "subdir": subDir, "mountPermissions": mode, "mountOptions": option, "csi.storage.k8s.io/pv/name": subDir},
			VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
			},
		})
		if err == nil && (r.mode > 0o7777 || len(r.target) <= len("/k/") || r.source[0] == '-') {
			t.Fatalf("%+v", r)
		}
	})
}
