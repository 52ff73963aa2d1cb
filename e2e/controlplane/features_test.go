package controlplane_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const namespace = metav1.NamespaceDefault

func (r *running) create(t *testing.T, group, version, resource, kind, name string, fields map[string]any) {
	t.Helper()
	object := map[string]any{
		"apiVersion": group + "/" + version, "kind": kind,
		"metadata": map[string]any{"name": name},
	}
	for field, value := range fields {
		object[field] = value
	}
	client := r.dynamic.Resource(schema.GroupVersionResource{Group: group, Version: version, Resource: resource}).Namespace(namespace)
	if _, err := client.Create(t.Context(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating %s %s: %v", kind, name, err)
	}
}

// crdsAreServed uses a type of each system. A Longhorn Volume is one of those
// whose CRD has a conversion webhook; it is read in the version that isn't
// stored, too.
func crdsAreServed(t *testing.T, r *running) {
	r.create(t, "longhorn.io", "v1beta2", "volumes", "Volume", "pvc-1", map[string]any{"spec": map[string]any{"accessMode": "rwx"}})
	for _, version := range []string{"v1beta2", "v1beta1"} {
		resource := schema.GroupVersionResource{Group: "longhorn.io", Version: version, Resource: "volumes"}
		if _, err := r.dynamic.Resource(resource).Namespace(namespace).Get(t.Context(), "pvc-1", metav1.GetOptions{}); err != nil {
			t.Errorf("reading it as %s: %v", version, err)
		}
	}
	r.create(t, "longhorn.io", "v1beta2", "settings", "Setting", "storage-network", map[string]any{"value": ""})
}

func certificates(t *testing.T, r *running) {
	const group, version = "cert-manager.io", "v1"
	certificate := func(name, issuer string, isCA bool) {
		r.create(t, group, version, "certificates", "Certificate", name, map[string]any{"spec": map[string]any{
			"secretName": name, "commonName": name, "dnsNames": []any{name + ".invalid"}, "isCA": isCA,
			"issuerRef":  map[string]any{"name": issuer},
			"privateKey": map[string]any{"algorithm": "ECDSA"},
		}})
	}
	r.create(t, group, version, "issuers", "Issuer", "self-signed", map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}})
	certificate("ca", "self-signed", true)
	r.create(t, group, version, "issuers", "Issuer", "ca", map[string]any{"spec": map[string]any{"ca": map[string]any{"secretName": "ca"}}})
	certificate("leaf", "ca", false)
	sideEffects := admissionv1.SideEffectClassNone
	url := "https://127.0.0.1:1/"
	_, err := r.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "injected", Annotations: map[string]string{"cert-manager.io/inject-ca-from": namespace + "/leaf"}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "injected.fairlead.io", ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			SideEffects: &sideEffects, AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	eventually(t, 30*time.Second, "issued and injected", func() error {
		secret, err := r.typed.CoreV1().Secrets(namespace).Get(t.Context(), "leaf", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(secret.Data[corev1.TLSCertKey]) == 0 || len(secret.Data["ca.crt"]) == 0 {
			return errors.New("the Secret has no certificate")
		}
		configuration, err := r.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), "injected", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if string(configuration.Webhooks[0].ClientConfig.CABundle) != string(secret.Data["ca.crt"]) {
			return errors.New("caBundle is not the authority's certificate")
		}
		return nil
	})
}

func volumesAreAttached(t *testing.T, r *running) {
	client := r.typed.StorageV1().VolumeAttachments()
	volume := "pvc-1"
	_, err := client.Create(t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "driver.longhorn.io", NodeName: "node-1",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "attached", func() error {
		attachment, err := client.Get(t.Context(), "csi-1", metav1.GetOptions{})
		if err == nil && !attachment.Status.Attached {
			err = errors.New("status.attached is false")
		}
		return err
	})
	if err := client.Delete(t.Context(), "csi-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "detached", func() error {
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d attachments are left", len(list.Items))
		}
		return err
	})
}

func workloadsRun(t *testing.T, r *running) {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: template.Labels}
	replicas := int32(5)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector, Template: template}}
	if _, err := r.typed.AppsV1().Deployments(namespace).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	template.Labels = map[string]string{"app": "agent"}
	daemonSet := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"}, Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template}}
	if _, err := r.typed.AppsV1().DaemonSets(namespace).Create(t.Context(), daemonSet, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "running", func() error {
		web, err := r.typed.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		agent, err := r.typed.AppsV1().DaemonSets(namespace).Get(t.Context(), "agent", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if web.Status.ReadyReplicas != replicas || agent.Status.NumberReady != 3 {
			return fmt.Errorf("%d of %d and %d of 3 pods are ready", web.Status.ReadyReplicas, replicas, agent.Status.NumberReady)
		}
		return nil
	})
}
