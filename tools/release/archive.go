package main

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const archiveName = "fairlead-image.tar"

// writeArchive packs an OCI layout with the files in order and without owners. containerd, and so
// kind, takes the image's name from the first annotation, skopeo the tag from the second.
func (r *release) writeArchive(index v1.ImageIndex) error {
	folder, err := os.MkdirTemp(r.dist, ".layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	path, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          r.image + ":" + r.version,
		"org.opencontainers.image.ref.name": r.version,
	})); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(r.dist, archiveName))
	if err != nil {
		return err
	}
	defer file.Close()
	if err := pack(file, folder, r.time); err != nil {
		return err
	}
	return file.Close()
}

// pack relies on WalkDir, which visits files in the order of their names.
func pack(to io.Writer, folder string, modified time.Time) error {
	writer := tar.NewWriter(to)
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return addFile(writer, filepath.ToSlash(name), content, 0o644, modified)
	})
	if err != nil {
		return err
	}
	return writer.Close()
}

// addFile adds a file of root.
func addFile(to *tar.Writer, name string, content []byte, mode int64, modified time.Time) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: modified}
	if err := to.WriteHeader(header); err != nil {
		return err
	}
	_, err := to.Write(content)
	return err
}
