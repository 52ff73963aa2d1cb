package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or folder of the share.
type node struct {
	fs.Inode
	share  share
	handle handle

	mu     sync.Mutex
	opens  int
	hidden *hidden // the file's name after its removal
}

// hidden is the name of a removed file that is still open.
type hidden struct {
	dir  handle
	name string
}

var (
	_ fs.NodeLookuper   = (*node)(nil)
	_ fs.NodeGetattrer  = (*node)(nil)
	_ fs.NodeSetattrer  = (*node)(nil)
	_ fs.NodeOpener     = (*node)(nil)
	_ fs.NodeCreater    = (*node)(nil)
	_ fs.NodeReader     = (*node)(nil)
	_ fs.NodeWriter     = (*node)(nil)
	_ fs.NodeFsyncer    = (*node)(nil)
	_ fs.NodeReleaser   = (*node)(nil)
	_ fs.NodeSymlinker  = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeLinker     = (*node)(nil)
	_ fs.NodeMkdirer    = (*node)(nil)
	_ fs.NodeUnlinker   = (*node)(nil)
	_ fs.NodeRmdirer    = (*node)(nil)
	_ fs.NodeRenamer    = (*node)(nil)
	_ fs.NodeReaddirer  = (*node)(nil)
	_ fs.NodeStatfser   = (*node)(nil)
)

// typeBits of ftype3: regular, folder, block, character, link, socket, pipe.
var typeBits = []uint32{0, syscall.S_IFREG, syscall.S_IFDIR, syscall.S_IFBLK, syscall.S_IFCHR, syscall.S_IFLNK, syscall.S_IFSOCK, syscall.S_IFIFO}

func (a attributes) fill(out *fuse.Attr) {
	if int(a.kind) < len(typeBits) {
		out.Mode = typeBits[a.kind] | a.mode&0o7777
	}
	out.Nlink, out.Uid, out.Gid, out.Ino = a.nlink, a.uid, a.gid, a.fileID
	out.Size, out.Blocks, out.Blksize = a.size, (a.used+511)/512, 1<<20
	out.Atime, out.Atimensec = uint64(a.atime[0]), a.atime[1]
	out.Mtime, out.Mtimensec = uint64(a.mtime[0]), a.mtime[1]
	out.Ctime, out.Ctimensec = uint64(a.ctime[0]), a.ctime[1]
}

// child identifies a file by its handle: servers use numbers of files again.
func (n *node) child(ctx context.Context, o object, out *fuse.EntryOut) *fs.Inode {
	hash := fnv.New64a()
	_, _ = hash.Write(o.handle)
	o.attributes.fill(&out.Attr)
	return n.NewInode(ctx, &node{share: n.share, handle: o.handle}, fs.StableAttr{Mode: out.Attr.Mode & syscall.S_IFMT, Ino: o.attributes.fileID, Gen: hash.Sum64()})
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o, e := n.share.lookup(ctx, n.handle, name)
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, o, out), 0
}

func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a, e := n.share.getattr(ctx, n.handle)
	a.fill(&out.Attr)
	return e
}

func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	var s setting
	if mode, ok := in.GetMode(); ok {
		mode &= 0o7777
		s.mode = &mode
	}
	if uid, ok := in.GetUID(); ok {
		s.uid = &uid
	}
	if gid, ok := in.GetGID(); ok {
		s.gid = &gid
	}
	if size, ok := in.GetSize(); ok {
		s.size = &size
	}
	if mtime, ok := in.GetMTime(); ok {
		s.mtime = &[2]uint32{uint32(mtime.Unix()), uint32(mtime.Nanosecond())}
	}
	if atime, ok := in.GetATime(); ok {
		s.atime = &[2]uint32{uint32(atime.Unix()), uint32(atime.Nanosecond())}
	}
	opened, _ := f.(*file)
	if e := n.share.setattr(ctx, n.handle, opened, s); e != 0 {
		return e
	}
	return n.Getattr(ctx, f, out)
}

func (n *node) Open(ctx context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	f, e := n.share.open(ctx, n.handle)
	if e != 0 {
		return nil, 0, e
	}
	n.count(1)
	return f, 0, 0
}

func (n *node) count(opens int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.opens += opens
}

// ownedBy sets the mode and the owner of a new file. Its group is that of the call.
func ownedBy(ctx context.Context, mode uint32) setting {
	mode &= 0o7777
	s := setting{mode: &mode}
	if caller, ok := fuse.FromContext(ctx); ok && caller.Uid != 0 {
		s.uid = &caller.Uid
	}
	return s
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	o, f, e := n.share.create(ctx, n.handle, name, ownedBy(ctx, mode), flags&syscall.O_EXCL != 0)
	if e != 0 {
		return nil, nil, 0, e
	}
	child := n.child(ctx, o, out)
	child.Operations().(*node).count(1)
	return child, f, 0, 0
}

func (n *node) Release(ctx context.Context, f fs.FileHandle) syscall.Errno {
	n.share.release(ctx, f.(*file))
	n.mu.Lock()
	n.opens--
	gone := n.hidden
	if n.opens > 0 {
		gone = nil
	}
	n.mu.Unlock()
	if gone == nil {
		return 0
	}
	return n.share.remove(ctx, gone.dir, gone.name, false)
}

func (n *node) Read(ctx context.Context, f fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	data, e := n.share.read(ctx, n.handle, f.(*file), uint64(offset), len(dest))
	return fuse.ReadResultData(data), e
}

func (n *node) Write(ctx context.Context, f fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	written, e := n.share.write(ctx, n.handle, f.(*file), uint64(offset), data)
	return uint32(written), e
}

// Fsync has nothing to do: writes are stable when they are answered.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return 0 }

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o, e := n.share.mkdir(ctx, n.handle, name, ownedBy(ctx, mode))
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, o, out), 0
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o, e := n.share.symlink(ctx, n.handle, name, target, ownedBy(ctx, 0o777))
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, o, out), 0
}

func (n *node) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	return n.share.readlink(ctx, n.handle)
}

func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	h := target.(*node).handle
	if e := n.share.link(ctx, h, n.handle, name); e != 0 {
		return nil, e
	}
	a, e := n.share.getattr(ctx, h)
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, object{h, a}, out), 0
}

// hide renames an open file instead of removing it, as the kernel's client does. The last
// Release removes it.
func (n *node) hide(ctx context.Context, name string) (bool, syscall.Errno) {
	inode := n.GetChild(name)
	if inode == nil {
		return false, 0
	}
	child := inode.Operations().(*node)
	child.mu.Lock()
	defer child.mu.Unlock()
	if child.opens == 0 || child.hidden != nil {
		return false, 0
	}
	to := hidden{n.handle, fmt.Sprintf(".nfs%016x%08x", inode.StableAttr().Ino, rand.Uint32())}
	e := n.share.rename(ctx, n.handle, name, n.handle, to.name)
	if e == 0 {
		child.hidden = &to
	}
	return e == 0, e
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	if hid, e := n.hide(ctx, name); hid || e != 0 {
		return e
	}
	return n.share.remove(ctx, n.handle, name, false)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.share.remove(ctx, n.handle, name, true)
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok || flags != 0 {
		return syscall.EINVAL
	}
	if from := n.GetChild(name); from == nil || from != to.GetChild(newName) {
		if _, e := to.hide(ctx, newName); e != 0 {
			return e
		}
	}
	return n.share.rename(ctx, n.handle, name, to.handle, newName)
}

func (n *node) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	entries, e := n.share.readdir(ctx, n.handle)
	if e != 0 {
		return nil, e
	}
	var list []fuse.DirEntry
	for _, entry := range entries {
		list = append(list, fuse.DirEntry{Name: entry.name, Ino: entry.fileID})
	}
	return fs.NewListDirStream(list), 0
}

func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	s, e := n.share.statfs(ctx, n.handle)
	const block = 4096
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = s.total/block, s.free/block, s.available/block, s.files, s.freeFiles
	return e
}
