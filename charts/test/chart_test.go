package test

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

func TestChartInstallsWhatKustomizeInstalls(t *testing.T) {
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			want := byName(t, byKustomize(t, v))
			got := byName(t, byHelm(t, withNamespace(v.values)))
			if diff := cmp.Diff(sortedNames(want), sortedNames(got)); diff != "" {
				t.Errorf("kustomize has -, the chart has +:\n%s", diff)
			}
			for _, object := range sortedNames(want) {
				if got[object] == nil {
					continue
				}
				if diff := cmp.Diff(want[object], got[object]); diff != "" {
					t.Errorf("%s: kustomize has -, the chart has +:\n%s", object, diff)
				}
			}
		})
	}
}

// withNamespace has the chart create the namespace, as the overlays do.
func withNamespace(values string) string {
	const create = "{namespace: {create: true}"
	if values == "" {
		return create + "}"
	}
	return create + ", " + strings.TrimPrefix(values, "{")
}

func TestVariantsCoverAllManifests(t *testing.T) {
	for _, kind := range []string{"overlays", "components"} {
		folders, err := os.ReadDir(path.Join(manifests, kind))
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range folders {
			covered := false
			for _, v := range variants {
				covered = covered || v.overlay == folder.Name() || slices.Contains(v.components, folder.Name())
			}
			if !covered {
				t.Errorf("no variant has %s of manifests/%s: give it values in the chart", folder.Name(), kind)
			}
		}
	}
}

func TestChartPassesHelmLint(t *testing.T) {
	for name, v := range variants {
		values, err := commonValues(v.values)
		if err != nil {
			t.Fatal(err)
		}
		for _, message := range lint.RunAll(chartFolder, values, namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// Helm never deletes a CRD with this annotation, and with it the objects.
func TestCRDsStayWhenTheReleaseIsUninstalled(t *testing.T) {
	crds := 0
	for _, o := range byHelm(t, "") {
		if o.at("kind") != "CustomResourceDefinition" {
			continue
		}
		crds++
		if o.at("metadata", "annotations", "helm.sh/resource-policy") != "keep" {
			t.Errorf("%s is not kept", o.name())
		}
	}
	files, err := os.ReadDir(path.Join(manifests, "crds"))
	if err != nil {
		t.Fatal(err)
	}
	if crds != len(files)-1 { // kustomization.yaml
		t.Errorf("the chart has %d CRDs, manifests/crds has %d", crds, len(files)-1)
	}
	for _, o := range byHelm(t, "{crds: {enabled: false}}") {
		if o.at("kind") == "CustomResourceDefinition" {
			t.Errorf("%s is there with crds.enabled=false", o.name())
		}
	}
}

func TestNewConfigurationRollsOut(t *testing.T) {
	checksum := func(values string) any {
		for _, o := range byHelm(t, values) {
			if o.name() == "Deployment fairlead-system/fairlead-webhook" {
				return o.at("spec", "template", "metadata", "annotations", "checksum/configuration")
			}
		}
		return nil
	}
	before, after := checksum(""), checksum("{configuration: {clusterDomain: example.org}}")
	if before == nil || after == nil || before == after {
		t.Errorf("the pods' checksum is %v before and %v after a change", before, after)
	}
}
