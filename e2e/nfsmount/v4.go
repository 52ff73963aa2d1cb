package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Operations of NFSv4.1.
const (
	opClose           = 4
	opCreate          = 6
	opGetattr         = 9
	opGetFH           = 10
	opLink            = 11
	opLookup          = 15
	opOpen            = 18
	opPutFH           = 22
	opPutRootFH       = 24
	opRead            = 25
	opReaddir         = 26
	opReadlink        = 27
	opRemove          = 28
	opRename          = 29
	opSaveFH          = 32
	opSetattr         = 34
	opWrite           = 38
	opExchangeID      = 42
	opCreateSession   = 43
	opDestroySession  = 44
	opSequence        = 53
	opDestroyClientID = 57
	opReclaimComplete = 58
)

// Attributes: their numbers, in the order in which they are encoded.
const (
	attrType       = 1
	attrSize       = 4
	attrLeaseTime  = 10
	attrFileID     = 20
	attrFilesFree  = 22
	attrFilesTotal = 23
	attrMode       = 33
	attrLinks      = 35
	attrOwner      = 36
	attrGroup      = 37
	attrSpaceAvail = 42
	attrSpaceFree  = 43
	attrSpaceTotal = 44
	attrSpaceUsed  = 45
	attrAccessTime = 47
	attrSetAccess  = 48
	attrChangeTime = 52
	attrModifyTime = 53
	attrSetModify  = 54
)

var fileAttributes = []int{attrType, attrSize, attrFileID, attrMode, attrLinks, attrOwner, attrGroup, attrSpaceUsed, attrAccessTime, attrChangeTime, attrModifyTime}

// newV4 makes a session and finds the share's root.
func newV4(ctx context.Context, rpc *transport, path string, o mountOptions) (*v4, handle, error) {
	c := &v4{rpc: rpc, soft: o.softTime(), softError: o.softError, ended: make(chan struct{}), ready: make(chan struct{}), files: map[*file]bool{}}
	random := make([]byte, 16)
	_, _ = rand.Read(random)
	copy(c.verifier[:], random)
	host, err := os.Hostname()
	if err != nil {
		return nil, nil, err
	}
	c.owner = "Linux NFSv4.1 " + host + "/" + hex.EncodeToString(random[8:])
	if err := c.establish(ctx); err != nil {
		return nil, nil, err
	}
	root, err := c.findRoot(ctx, path)
	if err != nil {
		c.leave()
		return nil, nil, err
	}
	go c.renew()
	return c, root, nil
}

func (c *v4) findRoot(ctx context.Context, path string) (handle, error) {
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
	r, e := c.do(ctx, false, func(o *operations) {
		o.add(opPutRootFH)
		for _, name := range names {
			o.add(opLookup).bytes([]byte(name))
		}
		o.add(opGetFH)
		bitmap(&o.add(opGetattr).writer, attrLeaseTime)
	})
	if e != 0 {
		return nil, e
	}
	root := bytes.Clone(r.skip(1 + len(names) + 1).bytes())
	readBitmap(r.skip(1))
	r.u32() // length
	c.lease = time.Duration(max(r.u32(), 3)) * time.Second
	return root, r.err
}

// readFile reads attributes of a GETATTR for fileAttributes.
func readFile(r *reader) (a attributes) {
	have := map[int]bool{}
	for i, word := range readBitmap(r.skip(1)) {
		for bit := range 32 {
			have[i*32+bit] = word>>bit&1 == 1
		}
	}
	r.u32() // length
	for _, attribute := range fileAttributes {
		if !have[attribute] {
			continue
		}
		switch attribute {
		case attrType:
			a.kind = r.u32()
		case attrSize:
			a.size = r.u64()
		case attrFileID:
			a.fileID = r.u64()
		case attrMode:
			a.mode = r.u32()
		case attrLinks:
			a.nlink = r.u32()
		case attrOwner:
			a.uid = number(r.bytes())
		case attrGroup:
			a.gid = number(r.bytes())
		case attrSpaceUsed:
			a.used = r.u64()
		case attrAccessTime:
			a.atime = readTime(r)
		case attrChangeTime:
			a.ctime = readTime(r)
		case attrModifyTime:
			a.mtime = readTime(r)
		}
	}
	return a
}

// nobody is the owner of what the server does not name by a number.
const nobody = 65534

func number(name []byte) uint32 {
	id, err := strconv.ParseUint(string(name), 10, 32)
	if err != nil {
		return nobody
	}
	return uint32(id)
}

func readTime(r *reader) [2]uint32 { return [2]uint32{uint32(r.u64()), r.u32()} }

// write4 encodes a setting for NFSv4.
func (s setting) write4(w *writer) {
	var bits []int
	values := &writer{}
	if s.size != nil {
		bits = append(bits, attrSize)
		values.u64(*s.size)
	}
	if s.mode != nil {
		bits = append(bits, attrMode)
		values.u32(*s.mode)
	}
	for attribute, id := range []*uint32{s.uid, s.gid} {
		if id != nil {
			bits = append(bits, attrOwner+attribute)
			values.bytes(strconv.AppendUint(nil, uint64(*id), 10))
		}
	}
	for i, t := range []*[2]uint32{s.atime, s.mtime} {
		if t != nil {
			bits = append(bits, []int{attrSetAccess, attrSetModify}[i])
			values.u32(1) // SET_TO_CLIENT_TIME4
			values.u64(uint64(t[0]))
			values.u32(t[1])
		}
	}
	bitmap(w, bits...)
	w.bytes(values.b)
}

// getObject asks for the handle and the attributes of the current file.
func getObject(o *operations) {
	o.add(opGetFH)
	bitmap(&o.add(opGetattr).writer, fileAttributes...)
}

func readObject(r *reader) (object, syscall.Errno) {
	h := bytes.Clone(r.skip(1).bytes())
	o := object{h, readFile(r)}
	return o, end(r)
}

func (c *v4) getattr(ctx context.Context, h handle) (attributes, syscall.Errno) {
	r, e := c.do(ctx, false, func(o *operations) {
		o.handle(h)
		bitmap(&o.add(opGetattr).writer, fileAttributes...)
	})
	if e != 0 {
		return attributes{}, e
	}
	a := readFile(r.skip(1))
	return a, end(r)
}

func (c *v4) setattr(ctx context.Context, h handle, f *file, s setting) syscall.Errno {
	if s.size == nil {
		f = nil
	}
	_, e := c.withState(ctx, f, true, func(o *operations, state string) {
		o.handle(h)
		o.add(opSetattr).b = append(o.b, state...)
		s.write4(&o.writer)
	})
	return e
}

func (c *v4) lookup(ctx context.Context, dir handle, name string) (object, syscall.Errno) {
	r, e := c.do(ctx, false, func(o *operations) {
		o.handle(dir)
		o.add(opLookup).bytes([]byte(name))
		getObject(o)
	})
	if e != 0 {
		return object{}, e
	}
	return readObject(r.skip(2))
}

// newFile has an owner of its own, so that no other open shares its state.
func (c *v4) newFile(h handle) *file {
	random := make([]byte, 8)
	_, _ = rand.Read(random)
	return &file{handle: h, owner: "open " + hex.EncodeToString(random), state: anonymous}
}

func (c *v4) open(ctx context.Context, h handle) (*file, syscall.Errno) {
	f := c.newFile(h)
	if e := c.reopen(ctx, f, f.state); e != 0 {
		return nil, e
	}
	c.remember(f)
	return f, 0
}

func (c *v4) remember(f *file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[f] = true
}

// reopen opens the file unless another caller has replaced the old state.
func (c *v4) reopen(ctx context.Context, f *file, old string) syscall.Errno {
	f.opening.Lock()
	defer f.opening.Unlock()
	if f.stateID() != old {
		return 0
	}
	r, e := c.do(ctx, true, func(o *operations) {
		o.handle(f.handle)
		openArguments(o, c.client(), f.owner)
		o.u32(0) // no creation
		o.u32(claimHandle)
	})
	if e != 0 {
		return e
	}
	f.setState(readState(r.skip(1)))
	return end(r)
}

func (c *v4) client() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.client
}

func (c *v4) create(ctx context.Context, dir handle, name string, s setting, exclusive bool) (object, *file, syscall.Errno) {
	f := c.newFile(nil)
	r, e := c.do(ctx, true, func(o *operations) {
		o.handle(dir)
		openArguments(o, c.client(), f.owner)
		o.u32(1) // OPEN4_CREATE
		how := uint32(0)
		if exclusive {
			how = 1 // GUARDED4
		}
		o.u32(how)
		s.write4(&o.writer)
		o.u32(claimName)
		o.bytes([]byte(name))
		getObject(o)
	})
	if e != 0 {
		return object{}, nil, e
	}
	f.setState(readState(r.skip(1)))
	made, e := readObject(r)
	if e != 0 {
		return object{}, nil, e
	}
	f.handle = made.handle
	c.remember(f)
	return made, f, 0
}

func (c *v4) release(ctx context.Context, f *file) {
	c.mu.Lock()
	delete(c.files, f)
	c.mu.Unlock()
	c.doByState(ctx, true, func(o *operations) {
		o.handle(f.handle)
		o.add(opClose).u32(0)
		o.b = append(o.b, f.stateID()...)
	})
}

// limits of a READ and a WRITE.
func (c *v4) limits() (read, write int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last.maxRead, c.last.maxWrite
}

func (c *v4) read(ctx context.Context, h handle, f *file, offset uint64, count int) ([]byte, syscall.Errno) {
	var all []byte
	for {
		most, _ := c.limits()
		r, e := c.withState(ctx, f, false, func(o *operations, state string) {
			o.handle(h)
			o.add(opRead).b = append(o.b, state...)
			o.u64(offset + uint64(len(all)))
			o.u32(uint32(min(count-len(all), most)))
		})
		if e != 0 {
			return nil, e
		}
		last := r.skip(2).ok()
		data := r.bytes()
		if e := end(r); e != 0 {
			return nil, e
		}
		if all == nil && (last || len(data) == count) {
			return data, 0
		}
		if all = append(all, data...); last || len(data) == 0 || len(all) >= count {
			return all, 0
		}
	}
}

func (c *v4) write(ctx context.Context, h handle, f *file, offset uint64, data []byte) (int, syscall.Errno) {
	written := 0
	for written < len(data) {
		_, most := c.limits()
		r, e := c.withState(ctx, f, false, func(o *operations, state string) {
			o.handle(h)
			o.add(opWrite).b = append(o.b, state...)
			o.u64(offset + uint64(written))
			o.u32(2) // FILE_SYNC4
			o.bytes(data[written:min(len(data), written+most)])
		})
		if e != 0 {
			return written, e
		}
		count := int(r.skip(2).u32())
		if end(r) != 0 || count == 0 {
			return written, syscall.EIO
		}
		written += count
	}
	return written, 0
}

// make creates a folder or a link.
func (c *v4) make(ctx context.Context, dir handle, name string, s setting, kind func(*operations)) (object, syscall.Errno) {
	r, e := c.do(ctx, true, func(o *operations) {
		o.handle(dir)
		kind(o.add(opCreate))
		o.bytes([]byte(name))
		s.write4(&o.writer)
		getObject(o)
	})
	if e != 0 {
		return object{}, e
	}
	r.skip(2).take(20) // change of the folder
	readBitmap(r)
	return readObject(r)
}

func (c *v4) mkdir(ctx context.Context, dir handle, name string, s setting) (object, syscall.Errno) {
	return c.make(ctx, dir, name, s, func(o *operations) { o.u32(2) })
}

func (c *v4) symlink(ctx context.Context, dir handle, name, target string, s setting) (object, syscall.Errno) {
	return c.make(ctx, dir, name, s, func(o *operations) { o.u32(5); o.bytes([]byte(target)) })
}

func (c *v4) readlink(ctx context.Context, h handle) ([]byte, syscall.Errno) {
	r, e := c.do(ctx, false, func(o *operations) { o.handle(h); o.add(opReadlink) })
	if e != 0 {
		return nil, e
	}
	target := r.skip(2).bytes()
	return target, end(r)
}

func (c *v4) link(ctx context.Context, h, dir handle, name string) syscall.Errno {
	_, e := c.do(ctx, true, func(o *operations) {
		o.handle(h)
		o.add(opSaveFH)
		o.handle(dir)
		o.add(opLink).bytes([]byte(name))
	})
	return e
}

func (c *v4) remove(ctx context.Context, dir handle, name string, _ bool) syscall.Errno {
	_, e := c.do(ctx, true, func(o *operations) { o.handle(dir); o.add(opRemove).bytes([]byte(name)) })
	return e
}

func (c *v4) rename(ctx context.Context, from handle, name string, to handle, newName string) syscall.Errno {
	_, e := c.do(ctx, true, func(o *operations) {
		o.handle(from)
		o.add(opSaveFH)
		o.handle(to)
		o.add(opRename).bytes([]byte(name))
		o.bytes([]byte(newName))
	})
	return e
}

func (c *v4) readdir(ctx context.Context, dir handle) ([]entry, syscall.Errno) {
	var all []entry
	var cookie uint64
	verifier := make([]byte, 8)
	for {
		r, e := c.do(ctx, false, func(o *operations) {
			o.handle(dir)
			o.add(opReaddir).u64(cookie)
			o.b = append(o.b, verifier...)
			o.u32(32 << 10)
			o.u32(64 << 10)
			bitmap(&o.writer, attrFileID)
		})
		if e != 0 {
			return nil, e
		}
		verifier = bytes.Clone(r.skip(2).take(8))
		before := len(all)
		for r.ok() {
			cookie = r.u64()
			name := string(r.bytes())
			readBitmap(r)
			r.u32() // length
			all = append(all, entry{name, r.u64()})
		}
		if last := r.ok(); last || r.err != nil || len(all) == before {
			return all, end(r)
		}
	}
}

func (c *v4) statfs(ctx context.Context, h handle) (space, syscall.Errno) {
	r, e := c.do(ctx, false, func(o *operations) {
		o.handle(h)
		bitmap(&o.add(opGetattr).writer, attrFilesFree, attrFilesTotal, attrSpaceAvail, attrSpaceFree, attrSpaceTotal)
	})
	if e != 0 {
		return space{}, e
	}
	readBitmap(r.skip(2))
	r.u32() // length
	s := space{freeFiles: r.u64(), files: r.u64(), available: r.u64(), free: r.u64(), total: r.u64()}
	return s, end(r)
}
