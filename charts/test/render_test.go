package test

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	chartFolder = "../fairlead"
	manifests   = "../../manifests"
	namespace   = "fairlead-system"
)

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
components: [%s]
`

const configurationPatch = `patches:
  - target: {kind: ConfigMap, name: fairlead}
    patch: |
      - op: replace
        path: /data/configuration.yaml
        value: |
          apiVersion: config.fairlead.io/v1alpha1
          kind: Configuration
`

// byKustomize renders a variant with kustomize's library.
func byKustomize(t *testing.T, v variant) []object {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs(manifests)
	if err != nil {
		t.Fatal(err)
	}
	if root, err = filepath.Rel(dir, root); err != nil {
		t.Fatal(err)
	}
	components := make([]string, 0, len(v.components))
	for _, c := range v.components {
		components = append(components, path.Join(root, "components", c))
	}
	text := fmt.Sprintf(kustomization, path.Join(root, "overlays", v.overlay), strings.Join(components, ", "))
	if v.configuration != "" {
		text += configurationPatch + indent(t, v.configuration)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	rendered, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	all, err := rendered.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(all))
}

// indent writes flow YAML as lines of the block in configurationPatch.
func indent(t *testing.T, flow string) string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(flow), &value); err != nil {
		t.Fatal(err)
	}
	block, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for line := range strings.Lines(string(block)) {
		lines.WriteString("          " + line)
	}
	return lines.String()
}

// byHelm renders the chart with Helm's library, as helm template does.
func byHelm(t *testing.T, values string) []object {
	t.Helper()
	files, err := renderChart(values, namespace)
	if err != nil {
		t.Fatal(err)
	}
	var objects []object
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") {
			objects = append(objects, parse(t, text)...)
		}
	}
	return objects
}

func renderChart(values, namespace string) (map[string]string, error) {
	chart, err := loader.LoadDir(chartFolder)
	if err != nil {
		return nil, err
	}
	given, err := common.ReadValues([]byte(values))
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "fairlead", Namespace: namespace, Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}
