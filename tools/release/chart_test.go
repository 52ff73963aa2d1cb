package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"
)

func TestChartHasVersionAndImagesOfTheRelease(t *testing.T) {
	r := newRelease(t)
	digits := strings.Repeat("0123456789abcdef", 4)
	r.nodeImage = "registry.example/node@sha256:" + digits
	if err := r.writeChart(v1.Hash{Algorithm: "sha256", Hex: digits}); err != nil {
		t.Fatal(err)
	}
	files := chartFiles(t, read(t, r, "fairlead-1.2.3.tgz"))
	var chart struct{ Name, Version, AppVersion string }
	unmarshal(t, files["fairlead/Chart.yaml"], &chart)
	if chart.Name != "fairlead" || chart.Version != "1.2.3" || chart.AppVersion != "v1.2.3" {
		t.Errorf("the chart is %+v", chart)
	}
	type image struct{ Repository, Digest string }
	var values struct {
		Image image
		NFS   struct{ Node struct{ Image image } }
	}
	unmarshal(t, files["fairlead/values.yaml"], &values)
	if got, want := values.Image, (image{"registry.example/fairlead", "sha256:" + digits}); got != want {
		t.Errorf("the image is %+v, want %+v", got, want)
	}
	if got, want := values.NFS.Node.Image, (image{"registry.example/node", "sha256:" + digits}); got != want {
		t.Errorf("the node plugin's image is %+v, want %+v", got, want)
	}
	if _, there := files["fairlead/templates/generated/crds.yaml"]; !there {
		t.Errorf("the chart has no CRDs among its %d files", len(files))
	}
}

func TestChartVersionsAreSemantic(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "0.1.0", "v0.1.0-4-gabc": "0.1.0-4-gabc", "b7d139a-dirty": "0.0.0-b7d139a-dirty"} {
		if got := (&release{version: version}).chartVersion(); got != want {
			t.Errorf("the chart of %s has the version %s, want %s", version, got, want)
		}
	}
}

func unmarshal(t *testing.T, text string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), to); err != nil {
		t.Fatal(err)
	}
}

func chartFiles(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	compressed, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for reader := tar.NewReader(compressed); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(content)
	}
}
