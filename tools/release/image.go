package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// writeImage writes the image for all architectures as one OCI archive and returns its digest.
func (r *release) writeImage() (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range architectures {
		binary, err := os.ReadFile(r.binary(architecture))
		if err != nil {
			return v1.Hash{}, err
		}
		image, err := r.imageOf(binary, architecture)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("for %s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: plainImage{image}, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	return digest, r.writeArchive(index)
}

// plainImage says that an image is no artifact. Otherwise its config's type is named as one,
// and skopeo does not keep the index's digest.
type plainImage struct{ v1.Image }

func (plainImage) ArtifactType() (string, error) { return "", nil }

// imageOf is the last stage of the Dockerfile: the binary and nothing else.
func (r *release) imageOf(binary []byte, architecture string) (v1.Image, error) {
	content, err := layerOf(binary, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
		tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.time}
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: created, CreatedBy: "COPY /fairlead /fairlead"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, created
	config.Config = v1.Config{
		User:       "65532:65532",
		Entrypoint: []string{"/fairlead"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "fairlead",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.commit,
		},
	}
	return mutate.ConfigFile(image, config)
}

func layerOf(binary []byte, modified time.Time) ([]byte, error) {
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "fairlead", Mode: 0o755, Size: int64(len(binary)), ModTime: modified}
	if err := writer.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := writer.Write(binary); err != nil {
		return nil, err
	}
	err := writer.Close()
	return content.Bytes(), err
}

const archiveName = "fairlead-image.tar"

// writeArchive packs an OCI layout with the files in order and without owners.
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
	name := r.image + ":" + r.version
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          name,
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
		header := &tar.Header{Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(content)), ModTime: modified}
		if err := writer.WriteHeader(header); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	if err != nil {
		return err
	}
	return writer.Close()
}
