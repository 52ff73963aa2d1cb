package clitest

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads"
)

// Target returns a cluster with the objects and the default configuration. refuse may fail a list.
func Target(t *testing.T, refuse func(client.ObjectList) error, objects ...client.Object) cli.Target {
	t.Helper()
	scheme, err := reads.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	// Multus is installed.
	scheme.AddKnownTypeWithName(reads.NetworkKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(reads.NetworkKind.GroupVersion().WithKind(reads.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if refuse != nil {
				if err := refuse(list); err != nil {
					return err
				}
			}
			return c.List(ctx, list, options...)
		},
	}).Build()
	return cli.Target{Longhorn: c.Longhorn, Configuration: c, Live: stored, Reader: reads.NewReader(c.Longhorn.Names(), stored, stored)}
}

// Noon is the present in tests.
var Noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Before is a time before Noon.
func Before(d time.Duration) metav1.Time { return metav1.NewTime(Noon.Add(-d)) }

// Client returns a client of a cluster with the objects.
func Client(t testing.TB, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme, err := reads.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&corev1.Event{}, "reportingComponent", func(o client.Object) []string { return []string{o.(*corev1.Event).ReportingController} }).Build()
}
