package main

import (
	"context"
	"hash/fnv"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or folder of the share.
type node struct {
	fs.Inode
	client *client
	handle handle
}

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeReader    = (*node)(nil)
	_ fs.NodeWriter    = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeReaddirer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
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

// child knows a file again by its handle: numbers of files are used again.
func (n *node) child(ctx context.Context, o object, out *fuse.EntryOut) *fs.Inode {
	hash := fnv.New64a()
	_, _ = hash.Write(o.handle)
	o.attributes.fill(&out.Attr)
	return n.NewInode(ctx, &node{client: n.client, handle: o.handle}, fs.StableAttr{Mode: out.Attr.Mode & syscall.S_IFMT, Ino: o.attributes.fileID, Gen: hash.Sum64()})
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o, e := n.client.lookup(ctx, n.handle, name)
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, o, out), 0
}

func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a, e := n.client.getattr(ctx, n.handle)
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
	if e := n.client.setattr(ctx, n.handle, s); e != 0 {
		return e
	}
	return n.Getattr(ctx, f, out)
}

func (n *node) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	o, e := n.client.make(ctx, procCreate, n.handle, name, mode&0o7777, flags&syscall.O_EXCL != 0)
	if e != 0 {
		return nil, nil, 0, e
	}
	return n.child(ctx, o, out), nil, 0, 0
}

func (n *node) Read(ctx context.Context, _ fs.FileHandle, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	data, e := n.client.read(ctx, n.handle, uint64(offset), len(dest))
	return fuse.ReadResultData(data), e
}

func (n *node) Write(ctx context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	written, e := n.client.write(ctx, n.handle, uint64(offset), data)
	return uint32(written), e
}

// Fsync has nothing to do: writes are stable when they are answered.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno { return 0 }

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o, e := n.client.make(ctx, procMkdir, n.handle, name, mode&0o7777, false)
	if e != 0 {
		return nil, e
	}
	return n.child(ctx, o, out), 0
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.client.remove(ctx, procRemove, n.handle, name)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.client.remove(ctx, procRmdir, n.handle, name)
}

func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, ok := parent.(*node)
	if !ok || flags != 0 {
		return syscall.EINVAL
	}
	return n.client.rename(ctx, n.handle, name, to.handle, newName)
}

func (n *node) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	entries, e := n.client.readdir(ctx, n.handle)
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
	total, free, available, files, freeFiles, e := n.client.statfs(ctx, n.handle)
	const block = 4096
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks, out.Bfree, out.Bavail, out.Files, out.Ffree = total/block, free/block, available/block, files, freeFiles
	return e
}
