package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Programs (RFC 1813).
const (
	nfsProgram   = 100003
	mountProgram = 100005
)

// Procedures of NFSv3.
const (
	procGetattr  = 1
	procSetattr  = 2
	procLookup   = 3
	procReadlink = 5
	procRead     = 6
	procWrite    = 7
	procCreate   = 8
	procMkdir    = 9
	procSymlink  = 10
	procRemove   = 12
	procRmdir    = 13
	procRename   = 14
	procLink     = 15
	procReaddir  = 16
	procFsstat   = 18
)

// v3 is a share by NFSv3, which has no state: it opens nothing.
type v3 struct{ nfs *transport }

// header of a call with AUTH_SYS credentials of root, after the place for the xid. The group
// is the caller's, which new files get. FUSE has checked the caller's permission.
func header(ctx context.Context, program, version, procedure uint32) *writer {
	gid := uint32(0)
	if caller, ok := fuse.FromContext(ctx); ok {
		gid = caller.Gid
	}
	w := &writer{b: make([]byte, 4, 256)}
	for _, v := range []uint32{0, 2, program, version, procedure} {
		w.u32(v)
	}
	w.u32(1) // AUTH_SYS
	w.u32(20)
	w.u32(0) // stamp
	w.u32(0) // no machine name
	w.u32(0) // uid
	w.u32(gid)
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
func (c *v3) do(ctx context.Context, procedure uint32, arguments func(*writer)) (*reader, syscall.Errno) {
	ctx, cancel := killable(ctx)
	defer cancel()
	var r *reader
	var status uint32
	var err error
	for waited := time.Duration(0); ; waited = pause(ctx, waited) {
		w := header(ctx, nfsProgram, 3, procedure)
		arguments(w)
		if r, status, err = call(ctx, c.nfs, w); err != nil || status != statusDelay {
			break
		}
	}
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
	w := header(ctx, mountProgram, 3, 1)
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

func (c *v3) getattr(ctx context.Context, h handle) (attributes, syscall.Errno) {
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

func (c *v3) lookup(ctx context.Context, dir handle, name string) (object, syscall.Errno) {
	r, e := c.do(ctx, procLookup, func(w *writer) { w.bytes(dir); w.bytes([]byte(name)) })
	if e != 0 {
		return object{}, e
	}
	return c.found(ctx, append(handle(nil), r.bytes()...), r)
}

func (c *v3) found(ctx context.Context, h handle, r *reader) (object, syscall.Errno) {
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

// make creates what the arguments after the name say.
func (c *v3) make(ctx context.Context, procedure uint32, dir handle, name string, arguments func(*writer)) (object, syscall.Errno) {
	r, e := c.do(ctx, procedure, func(w *writer) { w.bytes(dir); w.bytes([]byte(name)); arguments(w) })
	if e != 0 {
		return object{}, e
	}
	if !r.ok() {
		return c.lookup(ctx, dir, name)
	}
	return c.found(ctx, append(handle(nil), r.bytes()...), r)
}

func (c *v3) create(ctx context.Context, dir handle, name string, s setting, exclusive bool) (object, *file, syscall.Errno) {
	o, e := c.make(ctx, procCreate, dir, name, func(w *writer) {
		how := uint32(0) // UNCHECKED
		if exclusive {
			how = 1 // GUARDED
		}
		w.u32(how)
		s.write(w)
	})
	return o, &file{}, e
}

func (c *v3) mkdir(ctx context.Context, dir handle, name string, s setting) (object, syscall.Errno) {
	return c.make(ctx, procMkdir, dir, name, s.write)
}

func (c *v3) symlink(ctx context.Context, dir handle, name, target string, s setting) (object, syscall.Errno) {
	return c.make(ctx, procSymlink, dir, name, func(w *writer) { s.write(w); w.bytes([]byte(target)) })
}

func (c *v3) readlink(ctx context.Context, h handle) ([]byte, syscall.Errno) {
	r, e := c.do(ctx, procReadlink, func(w *writer) { w.bytes(h) })
	if e != 0 {
		return nil, e
	}
	maybe(r)
	target := r.bytes()
	return target, end(r)
}

func (c *v3) link(ctx context.Context, h, dir handle, name string) syscall.Errno {
	_, e := c.do(ctx, procLink, func(w *writer) { w.bytes(h); w.bytes(dir); w.bytes([]byte(name)) })
	return e
}

func (c *v3) open(context.Context, handle) (*file, syscall.Errno) { return &file{}, 0 }
func (c *v3) release(context.Context, *file)                      {}
func (c *v3) leave()                                              {}

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
	for _, t := range []*[2]uint32{s.atime, s.mtime} {
		if t == nil {
			w.u32(0)
			continue
		}
		w.u32(2) // SET_TO_CLIENT_TIME
		w.u32(t[0])
		w.u32(t[1])
	}
}

func (c *v3) setattr(ctx context.Context, h handle, _ *file, s setting) syscall.Errno {
	_, e := c.do(ctx, procSetattr, func(w *writer) { w.bytes(h); s.write(w); w.u32(0) })
	return e
}

func (c *v3) read(ctx context.Context, h handle, _ *file, offset uint64, count int) ([]byte, syscall.Errno) {
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

func (c *v3) write(ctx context.Context, h handle, _ *file, offset uint64, data []byte) (int, syscall.Errno) {
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

func (c *v3) remove(ctx context.Context, dir handle, name string, folder bool) syscall.Errno {
	procedure := uint32(procRemove)
	if folder {
		procedure = procRmdir
	}
	_, e := c.do(ctx, procedure, func(w *writer) { w.bytes(dir); w.bytes([]byte(name)) })
	return e
}

func (c *v3) rename(ctx context.Context, from handle, name string, to handle, newName string) syscall.Errno {
	_, e := c.do(ctx, procRename, func(w *writer) {
		w.bytes(from)
		w.bytes([]byte(name))
		w.bytes(to)
		w.bytes([]byte(newName))
	})
	return e
}

func (c *v3) readdir(ctx context.Context, dir handle) ([]entry, syscall.Errno) {
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

func (c *v3) statfs(ctx context.Context, h handle) (space, syscall.Errno) {
	r, e := c.do(ctx, procFsstat, func(w *writer) { w.bytes(h) })
	if e != 0 {
		return space{}, e
	}
	maybe(r)
	s := space{total: r.u64(), free: r.u64(), available: r.u64(), files: r.u64(), freeFiles: r.u64()}
	return s, end(r)
}
