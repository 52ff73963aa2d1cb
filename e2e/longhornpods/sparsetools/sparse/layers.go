package sparse

import (
	"io"
	"os"
)

// FileHandlingOperations receives the progress of a fold or a pruning.
type FileHandlingOperations interface {
	UpdateFileHandlingProgress(progress int, done bool, err error)
}

// FoldFile writes the child's data into its parent.
func FoldFile(child, parent string, progress FileHandlingOperations) error {
	return layers(child, parent, progress, func(child, parent *os.File, i Interval) error {
		return copyInterval(parent, child, i)
	})
}

// PruneFile frees what the child hides of its parent.
func PruneFile(parent, child string, progress FileHandlingOperations) error {
	return layers(child, parent, progress, func(_, parent *os.File, i Interval) error {
		return punch(parent, i.Begin, i.End-i.Begin)
	})
}

// SyncLocalFile copies a file with its holes.
func SyncLocalFile(source, target string) error {
	created, err := os.Create(target)
	if err != nil {
		return err
	}
	_ = created.Close()
	return layers(source, target, nil, func(source, target *os.File, i Interval) error {
		return copyInterval(target, source, i)
	})
}

func layers(child, parent string, progress FileHandlingOperations, do func(child, parent *os.File, i Interval) error) (err error) {
	if progress != nil {
		defer func() { progress.UpdateFileHandlingProgress(100, true, err) }()
	}
	c, err := os.Open(child)
	if err != nil {
		return err
	}
	defer c.Close()
	p, err := os.OpenFile(parent, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer p.Close()
	from, err := c.Stat()
	if err != nil {
		return err
	}
	to, err := p.Stat()
	if err != nil {
		return err
	}
	if to.Size() < from.Size() { // the volume was expanded after the parent was made
		if err := p.Truncate(from.Size()); err != nil {
			return err
		}
	}
	return eachData(c, func(i Interval) error { return do(c, p, i) })
}

func copyInterval(to io.WriterAt, from io.ReaderAt, i Interval) error {
	_, err := io.Copy(io.NewOffsetWriter(to, i.Begin), io.NewSectionReader(from, i.Begin, i.End-i.Begin))
	return err
}
