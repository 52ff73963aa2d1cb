package docs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/validators"
)

// End-to-end tests apply the examples to clusters.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil || len(files) < 10 {
		t.Fatalf("only %d examples were found (%v)", len(files), err)
	}
	configurations, services := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case bytes.Contains(document, []byte("kind: ConfigMap")):
				var c corev1.ConfigMap
				if err := yaml.UnmarshalStrict(document, &c); err != nil {
					t.Fatal(err)
				}
				if _, err := config.Parse([]byte(c.Data["configuration.yaml"])); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				configurations++
			case bytes.Contains(document, []byte("kind: NFSService")):
				var s validators.NFSService
				if err := yaml.Unmarshal(document, &s); err != nil {
					t.Fatal(err)
				}
				if v := validators.ValidateNFSService(s, nil, false); len(v.Problems) > 0 {
					t.Errorf("%s: %v", file, v.Problems)
				}
				services++
			}
		}
	}
	if configurations == 0 || services == 0 {
		t.Errorf("%d configurations and %d NFSServices were checked", configurations, services)
	}
}

func TestExamplesAreLinked(t *testing.T) {
	var text strings.Builder
	for _, p := range readPages(t) {
		text.WriteString(p.text)
	}
	files, err := filepath.Glob("examples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !strings.Contains(text.String(), file+")") {
			t.Errorf("no page links docs/%s", file)
		}
	}
}
