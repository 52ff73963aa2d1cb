// Package fakemounts is a mounts.System for tests without root: mount-utils' fake
// mounter, which mounts nothing, and servers that tests make hang or die.
package fakemounts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	mount "k8s.io/mount-utils"

	"github.com/fairlead-io/fairlead/internal/csi/mounts"
)

// System is a mounts.System. Hooks that are nil do nothing. They are called without a
// lock, before the operation, which fails with their error.
type System struct {
	OnMount   func(ctx context.Context, source, target string, options []string) error
	OnUnmount func(ctx context.Context, target string, force bool) error
	OnStatfs  func(ctx context.Context, path string) error
	OnChmod   func(ctx context.Context, path string, mode uint32) error
	// OneSuperblock gives all mounts the same device.
	OneSuperblock bool
	// OnReadAhead changes or refuses the read-ahead that is written.
	OnReadAhead func(kb int) (int, error)

	mu        sync.Mutex
	mounter   *mount.FakeMounter
	readAhead map[string]int
	log       []string
}

// New returns a system on which the given mounts exist.
func New(existing ...mount.MountPoint) *System {
	return &System{mounter: mount.NewFakeMounter(existing), readAhead: map[string]int{}}
}

// Log lists what was done.
func (s *System) Log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.log)
}

func (s *System) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// Mounts lists what is mounted.
func (s *System) Mounts() ([]mounts.Mount, error) {
	points, err := s.mounter.List()
	list := make([]mounts.Mount, len(points))
	for i, p := range points {
		list[i] = mounts.Mount{ID: i + 1, Source: p.Device, Target: p.Path, FsType: p.Type, Minor: s.minor(i), Options: p.Opts}
	}
	return list, err
}

func (s *System) minor(i int) int {
	if s.OneSuperblock {
		return 1
	}
	return i + 1
}

// Mount notes the mount.
func (s *System) Mount(ctx context.Context, source, target string, options []string) error {
	s.note("mount %s %v", source, options)
	if s.OnMount != nil {
		if err := s.OnMount(ctx, source, target, options); err != nil {
			return err
		}
	}
	s.mu.Lock()
	delete(s.readAhead, target)
	s.mu.Unlock()
	return s.mounter.Mount(source, target, mounts.FsType, options)
}

// Unmount forgets the mount.
func (s *System) Unmount(ctx context.Context, target string, force bool) error {
	s.note("umount force=%t", force)
	if s.OnUnmount != nil {
		if err := s.OnUnmount(ctx, target, force); err != nil {
			return err
		}
	}
	return s.mounter.Unmount(target)
}

// Statfs answers for any path.
func (s *System) Statfs(ctx context.Context, path string) (mounts.Usage, error) {
	if s.OnStatfs != nil {
		if err := s.OnStatfs(ctx, path); err != nil {
			return mounts.Usage{}, err
		}
	}
	return mounts.Usage{Bytes: 100, BytesFree: 60, BytesAvailable: 50, Inodes: 10, InodesFree: 4}, nil
}

// Chmod notes the mode.
func (s *System) Chmod(ctx context.Context, path string, mode uint32) error {
	s.note("chmod %o", mode)
	if s.OnChmod != nil {
		return s.OnChmod(ctx, path, mode)
	}
	return nil
}

// ReadAhead is what was written, 128 before.
func (s *System) ReadAhead(m mounts.Mount) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kb, ok := s.readAhead[m.Target]; ok {
		return kb, nil
	}
	return 128, nil
}

// SetReadAhead keeps whole pages of 4 KiB.
func (s *System) SetReadAhead(m mounts.Mount, kb int) error {
	s.note("read-ahead %d", kb)
	if s.OnReadAhead != nil {
		var err error
		if kb, err = s.OnReadAhead(kb); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readAhead[m.Target] = kb / 4 * 4
	return nil
}

// Hang waits until the context ends, as a call of a server that does not answer.
func Hang(ctx context.Context) error {
	<-ctx.Done()
	return errors.Join(mounts.ErrTimeout, ctx.Err())
}
