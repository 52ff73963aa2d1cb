package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// newImage makes the image for all architectures of the binaries and SBOMs in dist.
func (r *release) newImage() (v1.ImageIndex, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, architecture := range r.architectures {
		image, err := r.imageFor(architecture)
		if err != nil {
			return nil, fmt.Errorf("for %s: %w", architecture, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: plainImage{image}, Descriptor: v1.Descriptor{
			Platform: &v1.Platform{OS: "linux", Architecture: architecture},
		}})
	}
	return index, nil
}

// plainImage says that an image is no artifact. Otherwise its config's type is named as one,
// and skopeo does not keep the index's digest.
type plainImage struct{ v1.Image }

func (plainImage) ArtifactType() (string, error) { return "", nil }

// billInImage is where scanners of images look for an SBOM: in any file of this ending.
const billInImage = "usr/share/sbom/fairlead.cdx.json"

// imageFor is the last stage of the Dockerfile and the binary's SBOM.
func (r *release) imageFor(architecture string) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	created := v1.Time{Time: r.time}
	binary := r.binary(architecture)
	for _, file := range []struct {
		source, name string
		mode         int64
	}{{binary, "fairlead", 0o755}, {billOf(binary), billInImage, 0o644}} {
		layer, err := r.layer(file.source, file.name, file.mode)
		if err != nil {
			return nil, err
		}
		image, err = mutate.Append(image, mutate.Addendum{
			Layer: layer, History: v1.History{Created: created, CreatedBy: "COPY " + file.name + " /" + file.name},
		})
		if err != nil {
			return nil, err
		}
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

// layer has one file, and the folders that the file is in.
func (r *release) layer(source, name string, mode int64) (v1.Layer, error) {
	content, err := os.ReadFile(source)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer := tar.NewWriter(&packed)
	for i, char := range name {
		if char != '/' {
			continue
		}
		if err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name[:i+1], Mode: 0o755, ModTime: r.time}); err != nil {
			return nil, err
		}
	}
	if err := addFile(writer, name, content, mode, r.time); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(packed.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer),
	)
}
