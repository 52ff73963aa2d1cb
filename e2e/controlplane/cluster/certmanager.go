package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// certManagerNamespace is where cert-manager is installed by default, and where
// ClusterIssuers have their Secrets.
const certManagerNamespace = "cert-manager"

// probeName is the name of everything that is made to see a certificate issued.
const probeName = "controlplane-probe"

const issueTimeout = time.Minute

// awaitIssuing sees one certificate being issued. Nothing less tells that
// cert-manager's eleven controllers have all started.
func awaitIssuing(ctx context.Context, c clients) error {
	if err := ensureNamespace(ctx, c, certManagerNamespace); err != nil {
		return err
	}
	issuers := certManagerResource(c, "issuers")
	certificates := certManagerResource(c, "certificates")
	if err := create(ctx, issuers, "Issuer", map[string]any{"selfSigned": map[string]any{}}); err != nil {
		return err
	}
	err := create(ctx, certificates, "Certificate", map[string]any{
		"secretName": probeName,
		"dnsNames":   []any{"probe.invalid"},
		"issuerRef":  map[string]any{"name": probeName},
		// RSA, the default, takes longer to make than all the rest.
		"privateKey": map[string]any{"algorithm": "ECDSA"},
	})
	if err != nil {
		return err
	}
	err = await(ctx, "cert-manager to issue a certificate", issueTimeout, func(ctx context.Context) error {
		certificate, err := certificates.Get(ctx, probeName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return isReady(certificate)
	})
	if err != nil {
		return err
	}
	return errors.Join(
		removed(certificates.Delete(ctx, probeName, metav1.DeleteOptions{})),
		removed(issuers.Delete(ctx, probeName, metav1.DeleteOptions{})),
		removed(c.typed.CoreV1().Secrets(certManagerNamespace).Delete(ctx, probeName, metav1.DeleteOptions{})),
	)
}

func certManagerResource(c clients, resource string) dynamic.ResourceInterface {
	return c.dynamic.Resource(schema.GroupVersionResource{Group: "cert-manager.io", Version: "v1", Resource: resource}).
		Namespace(certManagerNamespace)
}

func create(ctx context.Context, resource dynamic.ResourceInterface, kind string, spec map[string]any) error {
	_, err := resource.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cert-manager.io/v1",
		"kind":       kind,
		"metadata":   map[string]any{"name": probeName},
		"spec":       spec,
	}}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the %s that probes cert-manager: %w", kind, err)
	}
	return nil
}

func removed(err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("removing what probed cert-manager: %w", err)
}

func isReady(object *unstructured.Unstructured) error {
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if ok && condition["type"] == "Ready" {
			if condition["status"] == "True" {
				return nil
			}
			return fmt.Errorf("%w: %v", errNotYet, condition["message"])
		}
	}
	return errNotYet
}

func ensureNamespace(ctx context.Context, c clients, name string) error {
	_, err := c.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %s: %w", name, err)
	}
	return nil
}
