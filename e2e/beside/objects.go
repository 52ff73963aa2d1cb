package beside

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: Namespace, Name: name}
}

// Text reads a field of one of Longhorn's objects, empty where the object has none.
func (c *Cluster) Text(ctx context.Context, kind, name string, path ...string) (string, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(longhorn.GroupVersion.WithKind(kind))
	if err := c.Client.Get(ctx, key(name), o); err != nil {
		return "", fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	text, _, err := unstructured.NestedString(o.Object, path...)
	return text, err
}

// waitText waits until a field has a value.
func (c *Cluster) waitText(ctx context.Context, want, kind, name string, path ...string) error {
	return eventually.Until(ctx, fmt.Sprintf("%s %s to be %s", kind, name, want), attachTimeout, func() error {
		text, err := c.Text(ctx, kind, name, path...)
		if err == nil && text != want {
			err = fmt.Errorf("it is %q", text)
		}
		return err
	})
}
