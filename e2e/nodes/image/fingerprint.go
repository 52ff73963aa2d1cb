package image

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
)

// Fingerprint writes names, sizes and times of the image's files and programs, which stand for their content.
func (i Image) Fingerprint(to io.Writer) error {
	if err := json.NewEncoder(to).Encode(i); err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(i.Files)) {
		if err := FingerprintFile(to, i.Files[at]); err != nil {
			return err
		}
	}
	for _, program := range append([]string{busybox}, i.Programs...) {
		found, err := exec.LookPath(program)
		if err != nil {
			return fmt.Errorf("image %s needs a program of this machine: %w", i.Name, err)
		}
		if err := FingerprintFile(to, found); err != nil {
			return err
		}
	}
	return nil
}

// FingerprintFile writes path, size and time of a file, or of all files of a folder.
func FingerprintFile(to io.Writer, path string) error {
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			_, err = fmt.Fprintln(to, path, info.Size(), info.ModTime().UnixNano())
		}
		return err
	})
}
