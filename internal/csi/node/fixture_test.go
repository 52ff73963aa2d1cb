package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/csi/mounts/fakemounts"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const driver = "nfs.fairlead.io"

// bed is a node plugin over a fake system, and the kubelet's side of it.
type bed struct {
	*Server
	t      *testing.T
	system *fakemounts.System
	dir    string
}

func newBed(t *testing.T) *bed {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.Do(t, err)
	system := fakemounts.New()
	timeouts := Timeouts{Mount: time.Second, Unmount: time.Second, Stat: 20 * time.Millisecond, Probe: 20 * time.Millisecond, Grace: 20 * time.Millisecond}
	return &bed{t: t, system: system, dir: dir, Server: &Server{
		Driver: driver, NodeName: "node-1", System: system, Timeouts: timeouts, KubeletDir: dir, PageSize: 4096, Log: slog.New(slog.DiscardHandler),
	}}
}

func (b *bed) target(name string) string { return filepath.Join(b.dir, name) }

// request is a valid one; change edits it.
func (b *bed) request(change ...func(*csi.NodePublishVolumeRequest)) *csi.NodePublishVolumeRequest {
	req := &csi.NodePublishVolumeRequest{
		VolumeId: "v", TargetPath: b.target("mount"),
		VolumeContext:  map[string]string{"share": "/exports"},
		PublishContext: map[string]string{driver + "/assigned-ip": "10.0.0.1"},
		VolumeCapability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{MountFlags: []string{"vers=3", "hard"}}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
		},
	}
	for _, c := range change {
		c(req)
	}
	return req
}

func (b *bed) publish(change ...func(*csi.NodePublishVolumeRequest)) error {
	_, err := b.NodePublishVolume(context.Background(), b.request(change...))
	return err
}

func (b *bed) unpublish() error {
	_, err := b.NodeUnpublishVolume(context.Background(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: b.target("mount")})
	return err
}

func (b *bed) must(err error) {
	b.t.Helper()
	must.Do(b.t, err)
}

// did asserts what the system was asked to do since the test began.
func (b *bed) did(want ...string) {
	b.t.Helper()
	if got := strings.Join(b.system.Log(), "; "); got != strings.Join(want, "; ") {
		b.t.Errorf("did %s\nwant %s", got, strings.Join(want, "; "))
	}
}

func (b *bed) mounted(want bool) {
	b.t.Helper()
	list, err := b.system.Mounts()
	b.must(err)
	if (len(list) > 0) != want {
		b.t.Errorf("mounted: %v, want %t", list, want)
	}
}

func (b *bed) fails(err error, code codes.Code, text string) {
	b.t.Helper()
	if status.Code(err) != code || !strings.Contains(err.Error(), text) {
		b.t.Errorf("%v, want %s with %q", err, code, text)
	}
}

func flags(list ...string) func(*csi.NodePublishVolumeRequest) {
	return func(r *csi.NodePublishVolumeRequest) { r.VolumeCapability.GetMount().MountFlags = list }
}

func attribute(key, value string) func(*csi.NodePublishVolumeRequest) {
	return func(r *csi.NodePublishVolumeRequest) { r.VolumeContext[key] = value }
}

func address(text string) func(*csi.NodePublishVolumeRequest) {
	return func(r *csi.NodePublishVolumeRequest) { r.PublishContext[driver+"/assigned-ip"] = text }
}

func readOnly(r *csi.NodePublishVolumeRequest) { r.Readonly = true }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
