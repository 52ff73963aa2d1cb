package main

import (
	"context"
	"fmt"
	"syscall"
)

// Programs (RFC 1813).
const (
	nfsProgram   = 100003
	mountProgram = 100005
	version      = 3
)

// Procedures of NFSv3.
const (
	procGetattr = 1
	procSetattr = 2
	procLookup  = 3
	procRead    = 6
	procWrite   = 7
	procCreate  = 8
	procMkdir   = 9
	procRemove  = 12
	procRmdir   = 13
	procRename  = 14
	procReaddir = 16
	procFsstat  = 18
)

type handle []byte

// attributes of a file: fattr3.
type attributes struct {
	kind, mode, nlink, uid, gid uint32
	size, used, fileID          uint64
	atime, mtime, ctime         [2]uint32
}

// client calls one server. Errors are errno values.
type client struct{ nfs *transport }

// header of a call with AUTH_SYS credentials of root, after the place for the xid.
func header(program, procedure uint32) *writer {
	w := &writer{b: make([]byte, 4)}
	for _, v := range []uint32{0, 2, program, version, procedure} {
		w.u32(v)
	}
	w.u32(1) // AUTH_SYS
	w.u32(20)
	w.u32(0) // stamp
	w.u32(0) // no machine name
	w.u32(0) // uid
	w.u32(0) // gid
	w.u32(0) // no more groups
	w.u32(0) // AUTH_NONE
	w.u32(0)
	return w
}

// body reads the header of an answer.
func body(answer []byte) (*reader, error) {
	r := &reader{b: answer}
	if kind, denied := r.u32(), r.u32(); kind != 1 || denied != 0 {
		return nil, fmt.Errorf("the server denies the call (%d, %d)", kind, denied)
	}
	r.u32()
	r.bytes()
	if status := r.u32(); status != 0 {
		return nil, fmt.Errorf("the server does not serve the call (%d)", status)
	}
	return r, r.err
}

func call(ctx context.Context, t *transport, w *writer) (*reader, uint32, error) {
	answer, err := t.call(ctx, w.b)
	if err != nil {
		return nil, 0, err
	}
	r, err := body(answer)
	if err != nil {
		return nil, 0, err
	}
	status := r.u32()
	return r, status, r.err
}

// do calls NFS and returns the rest of a good answer.
func (c *client) do(ctx context.Context, procedure uint32, arguments func(*writer)) (*reader, syscall.Errno) {
	w := header(nfsProgram, procedure)
	arguments(w)
	r, status, err := call(ctx, c.nfs, w)
	switch {
	case err == context.Canceled:
		return nil, syscall.EINTR
	case err != nil:
		return nil, syscall.EIO
	case status != 0:
		return nil, errno(status)
	}
	return r, 0
}

// errno of nfsstat3, of which the lower values are those of Unix.
func errno(status uint32) syscall.Errno {
	switch status {
	case 63:
		return syscall.ENAMETOOLONG
	case 66:
		return syscall.ENOTEMPTY
	case 70:
		return syscall.ESTALE
	case 10004:
		return syscall.ENOTSUP
	}
	if status < 63 {
		return syscall.Errno(status)
	}
	return syscall.EIO
}

func readAttributes(r *reader) attributes {
	a := attributes{kind: r.u32(), mode: r.u32(), nlink: r.u32(), uid: r.u32(), gid: r.u32(), size: r.u64(), used: r.u64()}
	r.take(16) // device numbers, file system
	a.fileID = r.u64()
	for _, t := range []*[2]uint32{&a.atime, &a.mtime, &a.ctime} {
		t[0], t[1] = r.u32(), r.u32()
	}
	return a
}

// maybe reads attributes that need not be there.
func maybe(r *reader) (attributes, bool) {
	if !r.ok() {
		return attributes{}, false
	}
	return readAttributes(r), true
}

// mount asks the MOUNT protocol for the handle of a share.
func mount(ctx context.Context, t *transport, share string) (handle, error) {
	w := header(mountProgram, 1)
	w.bytes([]byte(share))
	r, status, err := call(ctx, t, w)
	if err != nil {
		return nil, err
	}
	if status != 0 {
		return nil, errno(status)
	}
	root := append(handle(nil), r.bytes()...)
	return root, r.err
}

func (c *client) getattr(ctx context.Context, h handle) (attributes, syscall.Errno) {
	r, e := c.do(ctx, procGetattr, func(w *writer) { w.bytes(h) })
	if e != 0 {
		return attributes{}, e
	}
	return readAttributes(r), end(r)
}

func end(r *reader) syscall.Errno {
	if r.err != nil {
		return syscall.EIO
	}
	return 0
}

// object is a file that was found or made.
type object struct {
	handle     handle
	attributes attributes
}

func (c *client) lookup(ctx context.Context, dir handle, name string) (object, syscall.Errno) {
	r, e := c.do(ctx, procLookup, func(w *writer) { w.bytes(dir); w.bytes([]byte(name)) })
	if e != 0 {
		return object{}, e
	}
	return c.found(ctx, append(handle(nil), r.bytes()...), r)
}

func (c *client) found(ctx context.Context, h handle, r *reader) (object, syscall.Errno) {
	a, known := maybe(r)
	if e := end(r); e != 0 {
		return object{}, e
	}
	if !known {
		var e syscall.Errno
		if a, e = c.getattr(ctx, h); e != 0 {
			return object{}, e
		}
	}
	return object{h, a}, 0
}

// make creates a file or a folder.
func (c *client) make(ctx context.Context, procedure uint32, dir handle, name string, mode uint32, exclusive bool) (object, syscall.Errno) {
	r, e := c.do(ctx, procedure, func(w *writer) {
		w.bytes(dir)
		w.bytes([]byte(name))
		if procedure == procCreate {
			how := uint32(0) // UNCHECKED
			if exclusive {
				how = 1 // GUARDED
			}
			w.u32(how)
		}
		setting{mode: &mode}.write(w)
	})
	if e != 0 {
		return object{}, e
	}
	if !r.ok() {
		return c.lookup(ctx, dir, name)
	}
	return c.found(ctx, append(handle(nil), r.bytes()...), r)
}

// setting is sattr3; nil is left as it is.
type setting struct {
	mode, uid, gid *uint32
	size           *uint64
	mtime          *[2]uint32
}

func (s setting) write(w *writer) {
	for _, v := range []*uint32{s.mode, s.uid, s.gid} {
		if v == nil {
			w.u32(0)
			continue
		}
		w.u32(1)
		w.u32(*v)
	}
	if s.size == nil {
		w.u32(0)
	} else {
		w.u32(1)
		w.u64(*s.size)
	}
	w.u32(0) // atime
	if s.mtime == nil {
		w.u32(0)
	} else {
		w.u32(2) // SET_TO_CLIENT_TIME
		w.u32(s.mtime[0])
		w.u32(s.mtime[1])
	}
}

func (c *client) setattr(ctx context.Context, h handle, s setting) syscall.Errno {
	_, e := c.do(ctx, procSetattr, func(w *writer) { w.bytes(h); s.write(w); w.u32(0) })
	return e
}

func (c *client) read(ctx context.Context, h handle, offset uint64, count int) ([]byte, syscall.Errno) {
	r, e := c.do(ctx, procRead, func(w *writer) { w.bytes(h); w.u64(offset); w.u32(uint32(count)) })
	if e != 0 {
		return nil, e
	}
	maybe(r)
	r.u32() // count
	r.u32() // end of file
	data := r.bytes()
	return data, end(r)
}

func (c *client) write(ctx context.Context, h handle, offset uint64, data []byte) (int, syscall.Errno) {
	r, e := c.do(ctx, procWrite, func(w *writer) {
		w.bytes(h)
		w.u64(offset)
		w.u32(uint32(len(data)))
		w.u32(2) // FILE_SYNC
		w.bytes(data)
	})
	if e != 0 {
		return 0, e
	}
	if r.ok() { // weak cache consistency: attributes before
		r.take(24)
	}
	maybe(r)
	written := int(r.u32())
	return written, end(r)
}

func (c *client) remove(ctx context.Context, procedure uint32, dir handle, name string) syscall.Errno {
	_, e := c.do(ctx, procedure, func(w *writer) { w.bytes(dir); w.bytes([]byte(name)) })
	return e
}

func (c *client) rename(ctx context.Context, from handle, name string, to handle, newName string) syscall.Errno {
	_, e := c.do(ctx, procRename, func(w *writer) {
		w.bytes(from)
		w.bytes([]byte(name))
		w.bytes(to)
		w.bytes([]byte(newName))
	})
	return e
}

type entry struct {
	name   string
	fileID uint64
}

func (c *client) readdir(ctx context.Context, dir handle) ([]entry, syscall.Errno) {
	var all []entry
	var cookie uint64
	verifier := make([]byte, 8)
	for {
		r, e := c.do(ctx, procReaddir, func(w *writer) {
			w.bytes(dir)
			w.u64(cookie)
			w.b = append(w.b, verifier...)
			w.u32(32 << 10)
		})
		if e != 0 {
			return nil, e
		}
		maybe(r)
		verifier = append([]byte(nil), r.take(8)...)
		before := len(all)
		for r.ok() {
			all = append(all, entry{fileID: r.u64(), name: string(r.bytes())})
			cookie = r.u64()
		}
		if last := r.ok(); last || r.err != nil || len(all) == before {
			return all, end(r)
		}
	}
}

func (c *client) statfs(ctx context.Context, h handle) (total, free, available, files, freeFiles uint64, e syscall.Errno) {
	r, e := c.do(ctx, procFsstat, func(w *writer) { w.bytes(h) })
	if e != 0 {
		return 0, 0, 0, 0, 0, e
	}
	maybe(r)
	total, free, available, files, freeFiles = r.u64(), r.u64(), r.u64(), r.u64(), r.u64()
	return total, free, available, files, freeFiles, end(r)
}
