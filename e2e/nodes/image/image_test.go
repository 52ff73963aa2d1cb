package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
)

func TestArchiveHasWhatManifestNames(t *testing.T) {
	if _, err := os.Stat("/bin/busybox"); err != nil {
		t.Skip("there is no /bin/busybox here")
	}
	one := Image{Name: "docker.io/a/one:v1", Texts: map[string]string{"/bin/hello": "#!/bin/sh\necho hello\n"}, Entrypoint: []string{"hello"}}
	two := one
	two.Name = "docker.io/a/two:v1"
	var archive, again bytes.Buffer
	if err := errors.Join(Write(&archive, one, two), Write(&again, one, two)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(archive.Bytes(), again.Bytes()) {
		t.Error("the same files gave two archives")
	}
	files := entries(t, &archive)
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil || len(manifest) != 2 {
		t.Fatalf("manifest %s: %v", files["manifest.json"], err)
	}
	for i, name := range []string{one.Name, two.Name} {
		if manifest[i].RepoTags[0] != name || files[manifest[i].Config] == nil || files[manifest[i].Layers[0]] == nil {
			t.Errorf("image %s is incomplete: %+v", name, manifest[i])
		}
	}
	layer := entries(t, bytes.NewReader(files[manifest[0].Layers[0]]))
	if string(layer["usr/bin/hello"]) != one.Texts["/bin/hello"] || layer["usr/bin/sh"] == nil {
		t.Error("the layer lacks the program or a shell")
	}
}

func entries(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for archive := tar.NewReader(from); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name] != nil {
			t.Errorf("%s is there twice", header.Name)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = append([]byte{}, content...)
	}
}
