// Package sparse replaces the package of this name of Longhorn's sparse-tools, which the
// Go module proxy does not have everywhere: files of replicas, and copies between them.
// Unlike Longhorn's, replicas use the page cache, and a copy has its own protocol.
package sparse

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Interval is [Begin, End).
type Interval struct{ Begin, End int64 }

type FileIntervalKind int

const (
	SparseData FileIntervalKind = 1 + iota
	SparseHole
)

type FileInterval struct {
	Kind FileIntervalKind
	Interval
}

// ReaderWriterAt is a file, or a replica, which has layers.
type ReaderWriterAt interface {
	io.ReaderAt
	io.WriterAt
	GetDataLayout(ctx context.Context) (<-chan FileInterval, <-chan error, error)
}

// DirectFileIoProcessor is a file of a replica.
type DirectFileIoProcessor struct{ *os.File }

func NewDirectFileIoProcessor(name string, flag int, mode os.FileMode, create ...bool) (*DirectFileIoProcessor, error) {
	if len(create) > 0 && create[0] {
		flag |= os.O_CREATE
	}
	f, err := os.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	return &DirectFileIoProcessor{f}, nil
}

func (f *DirectFileIoProcessor) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *DirectFileIoProcessor) UnmapAt(length uint32, offset int64) (int, error) {
	if err := punch(f.File, offset, int64(length)); err != nil {
		return 0, err
	}
	return int(length), nil
}

// GetDataLayout has no holes in it.
func (f *DirectFileIoProcessor) GetDataLayout(ctx context.Context) (<-chan FileInterval, <-chan error, error) {
	intervals, failed := make(chan FileInterval), make(chan error, 1)
	go func() {
		defer close(failed)
		defer close(intervals)
		if err := eachData(f.File, func(i Interval) error {
			select {
			case intervals <- FileInterval{SparseData, i}:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}); err != nil {
			failed <- err
		}
	}()
	return intervals, failed, nil
}

// AllocateAligned is for direct I/O at Longhorn.
func AllocateAligned(size int) []byte { return make([]byte, size) }

func punch(f *os.File, offset, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

func eachData(f *os.File, do func(Interval) error) error {
	for at := int64(0); ; {
		begin, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil
		}
		if err != nil {
			return err
		}
		if at, err = unix.Seek(int(f.Fd()), begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if err := do(Interval{begin, at}); err != nil {
			return err
		}
	}
}
