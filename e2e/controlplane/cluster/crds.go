package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const crdTimeout = time.Minute

// parallelCRDs is how many are installed at a time: more only wait for each
// other inside the API server.
const parallelCRDs = 8

// installCRDs applies the CRDs and waits until every one of them is served.
func installCRDs(ctx context.Context, client dynamic.Interface, crds []*unstructured.Unstructured) error {
	resource := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelCRDs)
	for _, crd := range crds {
		group.Go(func() error {
			content, err := json.Marshal(crd.Object)
			if err != nil {
				return fmt.Errorf("encoding CRD %s: %w", crd.GetName(), err)
			}
			force := true
			_, err = resource.Patch(ctx, crd.GetName(), types.ApplyPatchType, content, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
			if err != nil {
				return fmt.Errorf("applying CRD %s: %w", crd.GetName(), err)
			}
			return await(ctx, "CRD "+crd.GetName()+" to be established", crdTimeout, func(ctx context.Context) error {
				return established(ctx, resource, crd.GetName())
			})
		})
	}
	return group.Wait()
}

func established(ctx context.Context, resource dynamic.ResourceInterface, name string) error {
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
		return err
	}
	for _, condition := range crd.Status.Conditions {
		switch {
		case condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue:
			return nil
		case condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse:
			return fmt.Errorf("its names are not accepted: %s", condition.Message)
		}
	}
	return errNotYet
}
