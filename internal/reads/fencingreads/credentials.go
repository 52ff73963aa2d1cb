package fencingreads

import (
	"context"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
)

// storageClasses of protected drivers.
func (r *FenceReader) storageClasses(ctx context.Context) ([]storagev1.StorageClass, error) {
	list, err := readAll(ctx, r.objects, &storagev1.StorageClassList{})
	ours := slices.DeleteFunc(list.Items, func(c storagev1.StorageClass) bool { return !r.Protects(c.Provisioner) })
	slices.SortFunc(ours, func(a, b storagev1.StorageClass) int { return strings.Compare(a.Name, b.Name) })
	return ours, err
}

func storageClassIdentity(c *storagev1.StorageClass) identityKey {
	return identityKey{c.Provisioner, c.Parameters[caches.ClusterIDAttribute]}
}

// secret to fence an identity with: from a StorageClass, else from any volume of the identity. Static volumes have no secret.
func (r *FenceReader) secret(s ledgerSources, id identityKey) *v1alpha1.SecretReference {
	for i := range s.classes {
		if secret := classSecret(&s.classes[i]); secret != nil && storageClassIdentity(&s.classes[i]) == id {
			return secret
		}
	}
	return r.held.secretOf(id)
}

// classSecret is the secret of a StorageClass; nil if it differs between volumes.
func classSecret(c *storagev1.StorageClass) *v1alpha1.SecretReference {
	name, namespace := c.Parameters[caches.ProvisionerSecretName], c.Parameters[caches.ProvisionerSecretNamespace]
	if name == "" || namespace == "" || strings.Contains(name+namespace, "${") {
		return nil
	}
	return &v1alpha1.SecretReference{Name: name, Namespace: namespace}
}
