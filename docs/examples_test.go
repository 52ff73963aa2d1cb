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
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/validators"
)

// End-to-end tests apply the examples to clusters.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob("examples/*.yaml")
	must.True(t, err == nil && len(files) >= 10, "only %d examples were found (%v)", len(files), err)
	configurations, services := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Do(t, err)
		for documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			must.Do(t, err)
			switch {
			case bytes.Contains(document, []byte("kind: ConfigMap")):
				var c corev1.ConfigMap
				must.Do(t, yaml.UnmarshalStrict(document, &c))
				if _, err := config.Parse([]byte(c.Data["configuration.yaml"])); err != nil {
					t.Errorf("%s: %v", file, err)
				}
				configurations++
			case bytes.Contains(document, []byte("kind: NFSService")):
				var s validators.NFSService
				must.Do(t, yaml.Unmarshal(document, &s))
				if v := validators.ValidateNFSService(s, nil, false); len(v.Problems) > 0 {
					t.Errorf("%s: %v", file, v.Problems)
				}
				services++
			}
		}
	}
	must.Check(t, configurations != 0 && services != 0, "%d configurations and %d NFSServices were checked", configurations, services)
}

func TestExamplesAreLinked(t *testing.T) {
	var text strings.Builder
	for _, p := range readPages(t) {
		text.WriteString(p.text)
	}
	files, err := filepath.Glob("examples/*.yaml")
	must.Do(t, err)
	for _, file := range files {
		must.Check(t, strings.Contains(text.String(), file+")"), "no page links docs/%s", file)
	}
}
