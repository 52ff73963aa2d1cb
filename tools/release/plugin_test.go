package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// packedRelease has archives of files in place of programs, and Krew's manifest of them.
func packedRelease(t *testing.T) (*release, krewPlugin) {
	t.Helper()
	r := newRelease(t)
	sums := map[platform]string{}
	for _, p := range platforms {
		sums[p] = fmt.Sprintf("%x", sha256.Sum256(packed(t, p, r.time)))
	}
	if err := r.writeKrewManifest(sums); err != nil {
		t.Fatal(err)
	}
	var plugin krewPlugin
	if err := yaml.UnmarshalStrict(read(t, r, krewManifestName), &plugin); err != nil {
		t.Fatal(err)
	}
	return r, plugin
}

func packed(t *testing.T, p platform, modified time.Time) []byte {
	t.Helper()
	content, err := packPlugin(p, []packedFile{{p.program(), 0o755, []byte("program for " + p.os)}, {"LICENSE", 0o644, []byte("license")}}, modified)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Krew's rules: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest and develop/best-practices.
func TestKrewManifestFollowsKrewsRules(t *testing.T) {
	_, plugin := packedRelease(t)
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" {
		t.Errorf("the manifest is a %s of %s", plugin.Kind, plugin.APIVersion)
	}
	if !regexp.MustCompile(`^[\w-]+$`).MatchString(plugin.Metadata.Name) || pluginProgram != "kubectl-"+plugin.Metadata.Name {
		t.Errorf("the program %s is not that of the plugin %q", pluginProgram, plugin.Metadata.Name)
	}
	if !isSemantic(plugin.Spec.Version) {
		t.Errorf("%q is no semantic version with a v before it", plugin.Spec.Version)
	}
	if short := plugin.Spec.ShortDescription; short == "" || strings.ContainsAny(short, "\r\n") || len(short) > 60 || strings.HasSuffix(short, ".") {
		t.Errorf("the short description %q is not one short line without a full stop", short)
	}
	if !strings.HasPrefix(plugin.Spec.Homepage, "https://") || plugin.Spec.Description == "" {
		t.Errorf("homepage %q, description %q", plugin.Spec.Homepage, plugin.Spec.Description)
	}
}

func TestKrewManifestNamesEachArchiveByItsSum(t *testing.T) {
	r, plugin := packedRelease(t)
	var found []platform
	for _, entry := range plugin.Spec.Platforms {
		p := platform{entry.Selector.MatchLabels["os"], entry.Selector.MatchLabels["arch"]}
		found = append(found, p)
		if len(entry.Selector.MatchLabels) != 2 {
			t.Errorf("Krew selects by os and arch only, not by %v", entry.Selector.MatchLabels)
		}
		if want := homepage + "/releases/download/" + r.version + "/" + p.archive(); entry.URI != want {
			t.Errorf("%v is downloaded from %s, want %s", p, entry.URI, want)
		}
		archive := packed(t, p, r.time)
		if want := fmt.Sprintf("%x", sha256.Sum256(archive)); entry.SHA256 != want {
			t.Errorf("%v has the sum %s, want %s", p, entry.SHA256, want)
		}
		files := namesAndModes(t, p, archive)
		for _, file := range entry.Files {
			if _, there := files[file.From]; !there || file.To != "." {
				t.Errorf("%v copies %s to %q out of an archive with %v", p, file.From, file.To, files)
			}
		}
		if mode := files[path.Clean(entry.Bin)]; mode != 0o755 {
			t.Errorf("%v starts %s, which has mode %o in an archive with %v", p, entry.Bin, mode, files)
		}
		if len(files) != len(entry.Files) || files["LICENSE"] != 0o644 {
			t.Errorf("%v copies %v out of an archive with %v", p, entry.Files, files)
		}
	}
	if !slices.Equal(found, platforms) {
		t.Errorf("the manifest has %v, want %v", found, platforms)
	}
}

// namesAndModes opens an archive by the ending of its name, as Krew does.
func namesAndModes(t *testing.T, p platform, archive []byte) map[string]int64 {
	t.Helper()
	files := map[string]int64{}
	if strings.HasSuffix(p.archive(), ".zip") {
		reader, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range reader.File {
			files[file.Name] = int64(file.Mode().Perm())
		}
		return files
	}
	compressed, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = header.Mode
	}
}

func TestKrewVersionsAreSemantic(t *testing.T) {
	for version, want := range map[string]bool{"v0.1.0": true, "v1.2.3-4-gabc": true, "0.1.0": false, "v1.2": false, "b7d139a": false, "": false} {
		if got := isSemantic(version); got != want {
			t.Errorf("%q is semantic: %v, want %v", version, got, want)
		}
	}
}
