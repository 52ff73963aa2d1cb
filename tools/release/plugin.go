package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// platform is where people use the program, as a plugin of kubectl.
type platform struct{ os, architecture string }

var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"},
}

func (p platform) program() string {
	if p.os == "windows" {
		return pluginProgram + ".exe"
	}
	return pluginProgram
}

func (p platform) archive() string {
	name := pluginProgram + "_" + p.os + "_" + p.architecture
	if p.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

const pluginProgram = "kubectl-fairlead"

// writePlugins packs the program for each platform, and the manifest by which Krew installs it.
func (r *release) writePlugins(ctx context.Context) error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	sums := map[platform]string{}
	for _, p := range platforms {
		program, err := r.pluginFor(ctx, p)
		if err != nil {
			return err
		}
		packed, err := packPlugin(p, []packedFile{{p.program(), 0o755, program}, {"LICENSE", 0o644, license}}, r.time)
		if err != nil {
			return fmt.Errorf("packing %s: %w", p.archive(), err)
		}
		if err := os.WriteFile(filepath.Join(r.dist, p.archive()), packed, 0o644); err != nil {
			return err
		}
		sums[p] = fmt.Sprintf("%x", sha256.Sum256(packed))
	}
	return r.writeKrewManifest(sums)
}

// pluginFor returns the program for a platform. On Linux it is the binary of the image.
func (r *release) pluginFor(ctx context.Context, p platform) ([]byte, error) {
	if p.os == "linux" {
		return os.ReadFile(r.binary(p.architecture))
	}
	fmt.Printf("building fairlead for %s/%s\n", p.os, p.architecture)
	file := filepath.Join(r.dist, "."+p.program())
	defer os.Remove(file)
	if err := r.compile(ctx, p.os, p.architecture, file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

type packedFile struct {
	name    string
	mode    int64
	content []byte
}

func packPlugin(p platform, files []packedFile, modified time.Time) ([]byte, error) {
	if p.os == "windows" {
		return packZip(files, modified)
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	writer := tar.NewWriter(compressed)
	for _, f := range files {
		if err := addFile(writer, f.name, f.content, f.mode, modified); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	err := compressed.Close()
	return packed.Bytes(), err
}

func packZip(files []packedFile, modified time.Time) ([]byte, error) {
	var packed bytes.Buffer
	writer := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(os.FileMode(f.mode))
		file, err := writer.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := writer.Close()
	return packed.Bytes(), err
}
