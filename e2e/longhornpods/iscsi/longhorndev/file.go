package longhorndev

import (
	"context"
	"fmt"
	"log"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	fileName = "volume"
	maxWrite = 1 << 20
)

// file is the only file of its FUSE file system: a volume's bytes.
type file struct {
	fs.Inode
	engine *engine
	size   atomic.Int64
}

var (
	_ fs.NodeGetattrer = (*file)(nil)
	_ fs.NodeSetattrer = (*file)(nil)
	_ fs.NodeOpener    = (*file)(nil)
	_ fs.NodeReader    = (*file)(nil)
	_ fs.NodeWriter    = (*file)(nil)
	_ fs.NodeFsyncer   = (*file)(nil)
)

// Getattr always has the size at hand; the kernel does not keep it.
func (f *file) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = syscall.S_IFREG|0o600, uint64(f.size.Load())
	return 0
}

func (f *file) Setattr(ctx context.Context, h fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.Getattr(ctx, h, out)
}

// Open keeps the file out of the page cache: the loop device has its own.
func (f *file) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

func (f *file) Read(_ context.Context, _ fs.FileHandle, p []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	p = p[:max(0, min(int64(len(p)), f.size.Load()-offset))]
	if err := f.engine.readAt(p, offset); err != nil {
		log.Printf("reading %d bytes at %d: %v", len(p), offset, err)
		return nil, syscall.EIO
	}
	return fuse.ReadResultData(p), 0
}

func (f *file) Write(_ context.Context, _ fs.FileHandle, p []byte, offset int64) (uint32, syscall.Errno) {
	if err := f.engine.writeAt(p, offset); err != nil {
		log.Printf("writing %d bytes at %d: %v", len(p), offset, err)
		return 0, syscall.EIO
	}
	return uint32(len(p)), 0
}

// Fsync has nothing to do: the engine answers a write when its replicas have it.
func (f *file) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return 0 }

// serve mounts the file system on a folder, which the caller unmounts as soon as its
// file is open: no process sees it then, and it ends when the file is closed, or with this process.
func serve(f *file, folder string) error {
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,max_read=%d", device, maxWrite)
	if err := unix.Mount("longhorn", folder, "fuse.longhorn", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		_ = unix.Close(device)
		return fmt.Errorf("mounting the volume's file: %w", err)
	}
	root := &fs.Inode{}
	raw := fs.NewNodeFS(root, &fs.Options{OnAdd: func(ctx context.Context) {
		root.AddChild(fileName, root.NewPersistentInode(ctx, f, fs.StableAttr{Mode: syscall.S_IFREG}), false)
	}})
	server, err := fuse.NewServer(raw, fmt.Sprintf("/dev/fd/%d", device), &fuse.MountOptions{MaxWrite: maxWrite, DisableXAttrs: true})
	if err != nil {
		_ = unix.Unmount(folder, unix.MNT_DETACH)
		_ = unix.Close(device)
		return err
	}
	go server.Serve()
	return nil
}
