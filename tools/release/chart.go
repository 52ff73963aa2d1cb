package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// chartVersion is the release's version as Helm takes it: semver.org, without the v that tags have.
func (r *release) chartVersion() string {
	if isSemantic(r.version) {
		return strings.TrimPrefix(r.version, "v")
	}
	return "0.0.0-" + r.version
}

// writeChart packs the chart as helm package does, with the version, and with the image by its digest.
func (r *release) writeChart(digest v1.Hash) error {
	root := filepath.Join(r.root, "charts", "fairlead")
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	writer := tar.NewWriter(compressed)
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text, err := r.released(filepath.ToSlash(name), string(content), digest)
		if err != nil {
			return err
		}
		return addFile(writer, path.Join("fairlead", filepath.ToSlash(name)), []byte(text), 0o644, r.time)
	})
	if err != nil {
		return err
	}
	if err := writer.Close(); err != nil {
		return err
	}
	if err := compressed.Close(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, "fairlead-"+r.chartVersion()+".tgz"), packed.Bytes(), 0o644)
}

// released has a release's version and image in place of what is in the repository.
func (r *release) released(name, text string, digest v1.Hash) (string, error) {
	var changes [][2]string
	switch name {
	case "Chart.yaml":
		changes = [][2]string{{"\nversion: 0.0.0-dev\n", "\nversion: " + r.chartVersion() + "\n"}, {"\nappVersion: dev\n", fmt.Sprintf("\nappVersion: %q\n", r.version)}}
	case "values.yaml":
		changes = [][2]string{{"\n  repository: " + imageInManifests + "\n", "\n  repository: " + r.image + "\n"}, {"\n  digest: \"\"\n", fmt.Sprintf("\n  digest: %q\n", digest)}}
		if node, nodeDigest, found := strings.Cut(r.nodeImage, "@"); found {
			changes = append(changes, [2]string{"\n      repository: " + nodeImageInManifests + "\n", "\n      repository: " + node + "\n"},
				[2]string{"\n      digest: \"\"\n", fmt.Sprintf("\n      digest: %q\n", nodeDigest)})
		}
	}
	for _, change := range changes {
		if strings.Count(text, change[0]) != 1 {
			return "", fmt.Errorf("%s has %q %d times, want once", name, change[0], strings.Count(text, change[0]))
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	return text, nil
}
