package manifests

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// CRDs reads the CustomResourceDefinitions from the manifests' folder.
func CRDs(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, crdFolder, "*", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing CRDs: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no CRDs in %s", folder)
	}
	var crds []*unstructured.Unstructured
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs: %w", err)
		}
		inFile, err := decodeCRDs(content)
		if err != nil {
			return nil, fmt.Errorf("reading CRDs from %s: %w", file, err)
		}
		crds = append(crds, inFile...)
	}
	return crds, nil
}

func decodeCRDs(content []byte) ([]*unstructured.Unstructured, error) {
	const bufferSize = 4096
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), bufferSize)
	var crds []*unstructured.Unstructured
	for {
		crd := &unstructured.Unstructured{}
		err := decoder.Decode(&crd.Object)
		if errors.Is(err, io.EOF) {
			return crds, nil
		}
		if err != nil {
			return nil, err
		}
		if crd.GetKind() != "CustomResourceDefinition" {
			continue
		}
		withoutConversionWebhook(crd)
		// What the generator left there is for the API server to fill.
		unstructured.RemoveNestedField(crd.Object, "status")
		crds = append(crds, crd)
	}
}

// withoutConversionWebhook lets a CRD be used without its system running.
//
// Longhorn's BackingImage, BackupTarget, EngineImage, Node and Volume are
// converted between v1beta1 and v1beta2 by Longhorn's own webhook, which isn't
// here, so that every read and write would fail. v1beta2 is the storage version
// and the only one that is used; with strategy None it is stored and served as
// it is. cert-manager's and Multus' CRDs have no conversion.
func withoutConversionWebhook(crd *unstructured.Unstructured) {
	strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
	if strategy == string(apiextensionsv1.WebhookConverter) {
		unstructured.RemoveNestedField(crd.Object, "spec", "conversion")
	}
}
