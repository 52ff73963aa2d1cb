// Package sample makes the admission reviews that Fairlead is measured with.
package sample

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

//go:embed pod.yaml
var clientPod []byte

// ErrTooSmall is returned for a size that the bare review exceeds.
var ErrTooSmall = errors.New("the review is larger than that without padding")

// ClientPodReview is the review of the creation of a client pod, exactly size
// bytes long: environment variables make up what is missing, as that is what
// pods grow by in practice. Annotations are set on the pod; nil sets none.
func ClientPodReview(size int, annotations map[string]string) ([]byte, error) {
	pod, err := ClientPod()
	if err != nil {
		return nil, err
	}
	pod.Annotations = annotations
	env := &pod.Spec.Containers[len(pod.Spec.Containers)-1].Env
	bare, err := create(pod)
	if err != nil {
		return nil, err
	}
	missing := size - len(bare)
	for i := 0; missing >= 2*len(variable); i++ {
		*env = append(*env, corev1.EnvVar{Name: fmt.Sprintf("SAMPLE_%04d", i), Value: "http://longhorn-backend:9500/v1"})
		missing -= len(variable)
	}
	missing -= len(lastVariable)
	if missing < 0 {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrTooSmall, len(bare), size)
	}
	*env = append(*env, corev1.EnvVar{Name: "LAST", Value: strings.Repeat("v", missing)})
	return create(pod)
}

// ClientPod is a CSI plugin pod as its DaemonSet creates it.
func ClientPod() (*corev1.Pod, error) {
	var pod corev1.Pod
	if err := yaml.UnmarshalStrict(clientPod, &pod); err != nil {
		return nil, fmt.Errorf("reading the sample pod: %w", err)
	}
	return &pod, nil
}

// What one environment variable, and the last, take in JSON.
const (
	variable     = `,{"name":"SAMPLE_0000","value":"http://longhorn-backend:9500/v1"}`
	lastVariable = `,{"name":"LAST","value":""}`
)

func create(pod *corev1.Pod) ([]byte, error) {
	object, err := json.Marshal(pod)
	if err != nil {
		return nil, fmt.Errorf("writing the sample pod: %w", err)
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := metav1.GroupVersionResource{Version: "v1", Resource: "pods"}
	review, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:  "705ab4f5-6393-11e8-b7cc-42010a800002",
			Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: pod.Namespace,
			Operation: admissionv1.Create,
			UserInfo: authenticationv1.UserInfo{
				Username: "system:serviceaccount:kube-system:daemon-set-controller",
				UID:      "9a6f3a52-6a6e-4c29-a9d7-1a6b3b6a4f9e",
				Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
			},
			Object:  runtime.RawExtension{Raw: object},
			DryRun:  ptr.To(false),
			Options: runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1"}`)},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("writing the sample review: %w", err)
	}
	return review, nil
}
