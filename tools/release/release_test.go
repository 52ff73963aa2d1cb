package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// newRelease has files in place of binaries.
func newRelease(t *testing.T) *release {
	t.Helper()
	r := &release{
		root: repository(t), dist: t.TempDir(), version: "v1.2.3", commit: "c0ffee",
		time: time.Unix(1700000000, 0).UTC(), image: "registry.example/fairlead", architectures: architectures,
	}
	for _, architecture := range architectures {
		for file, content := range map[string]string{r.binary(architecture): "program for ", billOf(r.binary(architecture)): "SBOM for "} {
			if err := os.WriteFile(file, []byte(content+architecture), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return r
}

func TestImageIsValidAndHasBinaryAndSBOM(t *testing.T) {
	r := newRelease(t)
	digest, err := r.writeImage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	index := unpack(t, filepath.Join(r.dist, archiveName))
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest {
		t.Fatalf("the archive has %+v (%v), want %s alone", manifest, err, digest)
	}
	if index, err = index.ImageIndex(digest); err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if manifest, err = index.IndexManifest(); err != nil || len(manifest.Manifests) != len(architectures) {
		t.Fatalf("the index has %+v (%v)", manifest, err)
	}
	for i, architecture := range architectures {
		if got := manifest.Manifests[i].ArtifactType; got != "" {
			t.Errorf("the image for %s is called an artifact, %s", architecture, got)
		}
		if got := manifest.Manifests[i].Platform.Architecture; got != architecture {
			t.Errorf("image %d is for %s, want %s", i, got, architecture)
		}
		image, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		checkImage(t, image, architecture)
	}
}

func checkImage(t *testing.T, image v1.Image, architecture string) {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.OS != "linux" || config.Architecture != architecture || config.Config.User != "65532:65532" ||
		len(config.Config.Entrypoint) != 1 || config.Config.Entrypoint[0] != "/fairlead" {
		t.Errorf("the configuration for %s is %+v", architecture, config)
	}
	files := filesOf(t, image)
	want := map[string]string{
		"fairlead": "755 program for " + architecture, "usr/": "755 ", "usr/share/": "755 ", "usr/share/sbom/": "755 ",
		billInImage: "644 SBOM for " + architecture,
	}
	if !maps.Equal(files, want) {
		t.Errorf("the image for %s has\n%v, want\n%v", architecture, files, want)
	}
}

// filesOf returns modes and contents by name, as the layers have them.
func filesOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, layer := range layers {
		content, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		for reader := tar.NewReader(content); ; {
			header, err := reader.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(reader)
			if err != nil {
				t.Fatal(err)
			}
			if header.Uid != 0 || header.Gid != 0 {
				t.Errorf("%s is not root's", header.Name)
			}
			files[header.Name] = fmt.Sprintf("%o %s", header.Mode, text)
		}
	}
	return files
}

func TestSameInputGivesTheSameBytes(t *testing.T) {
	first, second := newRelease(t), newRelease(t)
	for _, r := range []*release{first, second} {
		digest, err := r.writeImage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.writeManifests(digest); err != nil {
			t.Fatal(err)
		}
		if err := r.writeChart(digest); err != nil {
			t.Fatal(err)
		}
		if err := writeSums(r.dist); err != nil {
			t.Fatal(err)
		}
	}
	a, b := read(t, first, sumsName), read(t, second, sumsName)
	if !bytes.Equal(a, b) {
		t.Errorf("the checksums are\n%s\nand\n%s", a, b)
	}
	if lines := strings.Count(string(a), "\n"); lines < 5 || strings.Contains(string(a), "  .") {
		t.Errorf("checksums of %d files:\n%s", lines, a)
	}
}

func TestTwoBuildsGiveOneDigest(t *testing.T) {
	var digests []v1.Hash
	for range 2 {
		digest, err := builtImage(t).Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds have the digests %v", digests)
	}
}

// builtImage is the image of this machine's architecture with the real program.
func builtImage(t *testing.T) v1.Image {
	t.Helper()
	r := newRelease(t)
	if err := os.Remove(r.binary(runtime.GOARCH)); err != nil {
		t.Fatal(err)
	}
	if err := r.build(t.Context(), runtime.GOARCH); err != nil {
		t.Fatal(err)
	}
	image, err := r.imageFor(runtime.GOARCH)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestManifestsNameImagesByDigest(t *testing.T) {
	const digits = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	r := newRelease(t)
	r.nodeImage = "registry.example/node@sha256:" + digits
	if err := r.writeManifests(v1.Hash{Algorithm: "sha256", Hex: digits}); err != nil {
		t.Fatal(err)
	}
	for overlay, want := range map[string]string{"cert-manager": "registry.example/fairlead", "nfs": "registry.example/node"} {
		rendered := read(t, r, "install-"+overlay+".yaml")
		if !bytes.Contains(rendered, []byte("image: "+want+"@sha256:"+digits+"\n")) {
			t.Errorf("%s does not name %s by its digest", overlay, want)
		}
		if images := unpinned(rendered); len(images) > 0 {
			t.Errorf("%s names %v without a digest", overlay, images)
		}
	}
}

func TestOnlyTheNodeImageMayLackADigest(t *testing.T) {
	r := newRelease(t)
	if err := r.writeManifests(v1.Hash{Algorithm: "sha256", Hex: "too-short"}); err == nil {
		t.Error("manifests with an invalid digest were written")
	}
	for text, want := range map[string]int{
		"  image: fairlead:dev\n":                     1,
		"  - image: fairlead\n  - image: b@sha256:12": 2,
		"  image: a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n": 0,
	} {
		if got := unpinned([]byte(text)); len(got) != want {
			t.Errorf("%q names %v without a digest, want %d", text, got, want)
		}
	}
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t *testing.T, r *release, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func unpack(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	folder := t.TempDir()
	for files := tar.NewReader(file); ; {
		header, err := files.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(files)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, filepath.FromSlash(header.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		t.Fatal(err)
	}
	return index
}
