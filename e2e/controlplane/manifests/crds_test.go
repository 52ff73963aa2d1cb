package manifests

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestConversionWebhooksAreRemoved(t *testing.T) {
	crds, err := decodeCRDs([]byte(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: volumes.longhorn.io}
spec:
  group: longhorn.io
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1beta2]}}
status: {conditions: []}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: not-a-crd}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: settings.longhorn.io}
spec: {group: longhorn.io, conversion: {strategy: None}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(crds) != 2 {
		t.Fatalf("%d CRDs, want 2", len(crds))
	}
	if _, found, _ := unstructured.NestedMap(crds[0].Object, "spec", "conversion"); found {
		t.Error("the webhook is still there")
	}
	if _, found := crds[0].Object["status"]; found {
		t.Error("the status is still there")
	}
	if strategy, _, _ := unstructured.NestedString(crds[1].Object, "spec", "conversion", "strategy"); strategy != "None" {
		t.Errorf("strategy None became %q", strategy)
	}
}
