package sample_test

import (
	"encoding/json"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

func TestReviewsHaveTheSizeAskedForAndAreOfClientPods(t *testing.T) {
	for _, size := range []int{12_400, 12_431, 60_000} {
		body, err := sample.ClientPodReview(size, map[string]string{"example.com/a": "b"})
		if err != nil {
			t.Fatal(err)
		}
		if len(body) != size {
			t.Errorf("got %d bytes, want %d", len(body), size)
		}
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := json.Unmarshal(review.Request.Object.Raw, &pod); err != nil {
			t.Fatal(err)
		}
		for key, value := range longhorn.DefaultNames().ClientLabels {
			if pod.Labels[key] != value {
				t.Errorf("got labels %v, want %s=%s among them", pod.Labels, key, value)
			}
		}
		if pod.Annotations["example.com/a"] != "b" {
			t.Errorf("got annotations %v, want those asked for", pod.Annotations)
		}
	}
}

func TestASizeThatIsTooSmallIsRefused(t *testing.T) {
	if _, err := sample.ClientPodReview(1000, nil); !errors.Is(err, sample.ErrTooSmall) {
		t.Errorf("got %v, want ErrTooSmall", err)
	}
}
