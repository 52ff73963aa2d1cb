package nfs

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/webhook/registration"
)

// The GKE driver's PersistentVolumes name no service.
const (
	gkeDriver  = "nfs.lb.csi.storage.gke.io"
	gkeService = "gke"
)

const configuration = `apiVersion: config.fairlead.io/v1alpha1
kind: Configuration
nfs:
  drivers:
    - name: ` + Driver + `
    - name: ` + gkeDriver + `
      defaultService: ` + Namespace + `/` + gkeService + `
      nodeAnnotations: %s
`

// Configure has Fairlead serve both drivers; processes read it when they start.
// annotations of nodes of the GKE driver are read or write.
func (c *Cluster) Configure(ctx context.Context, annotations string) error {
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: registration.Namespace, Name: "fairlead"}}
	patch := fmt.Sprintf(`{"data":{"configuration.yaml":%q}}`, fmt.Sprintf(configuration, annotations))
	if err := c.Client.Patch(ctx, m, patchJSON(patch)); err != nil {
		return fmt.Errorf("configuring Fairlead: %w", err)
	}
	return nil
}
