package webhook

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/storage"
)

func strayReview(namespace string) string {
	return reviewOf(`{"group":"fairlead.io","version":"v1alpha1","kind":"Setting"}`, fmt.Sprintf(`"resource":{"group":"fairlead.io","version":"v1alpha1","resource":"settings"},`+
		`"namespace":%q,"name":"priority-class","operation":"CREATE","object":{"metadata":{"name":"priority-class"},"value":"x"}`, namespace))
}

func TestStraySettingIsRefusedWithTheRightNamespace(t *testing.T) {
	h := newRig(t, fakeClient(t))
	got := h.ask(t, straySettingsPath, strayReview("default"))
	if got.Allowed || !strings.Contains(got.Result.Message, `in namespace "longhorn-system" (longhorn)`) || got.Result.Details.Causes[0].Field != "metadata.namespace" {
		t.Errorf("got %+v", got)
	}
	if got := h.ask(t, straySettingsPath, strayReview("longhorn-system")); !got.Allowed {
		t.Errorf("where settings are read from: got %+v", got)
	}
}

func TestStraySettingsAreSeenInUserNamespaces(t *testing.T) {
	selector, err := metav1.LabelSelectorAsSelector(validateStraySettings(storage.Profiles()).NamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]bool{"default": true, Namespace: false, "kube-system": false, "longhorn-system": false} {
		if got := selector.Matches(k8slabels.Set{corev1.LabelMetadataName: namespace}); got != want {
			t.Errorf("%s: seen %v", namespace, got)
		}
	}
}
