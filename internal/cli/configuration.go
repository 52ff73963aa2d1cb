package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// The ConfigMap of the manifests.
const (
	configurationMap = "fairlead"
	configurationKey = "configuration.yaml"
)

// Configuration reads the file of --config, else the ConfigMap in the cluster, else the defaults;
// then unread says why the ConfigMap could not be used.
func (o *ClientOptions) Configuration(ctx context.Context, objects client.Reader) (c *config.Configuration, unread string, err error) {
	if o.ConfigFile != "" {
		c, err = config.Load(o.ConfigFile)
		return c, "", err
	}
	var m corev1.ConfigMap
	where := fmt.Sprintf("ConfigMap %s/%s", registration.Namespace, configurationMap)
	err = objects.Get(ctx, client.ObjectKey{Namespace: registration.Namespace, Name: configurationMap}, &m)
	switch {
	case apierrors.IsForbidden(err):
		unread = "you may not get " + where + ", which ClusterRoles fairlead-planner, fairlead-settings-viewer, fairlead-fence-viewer and fairlead-nfs-viewer allow there"
	case apierrors.IsNotFound(err):
		unread = "there is no " + where
	case err != nil:
		unread = err.Error()
	default:
		if c, err = config.Parse([]byte(m.Data[configurationKey])); err == nil {
			return c, "", nil
		}
		unread = fmt.Sprintf("%s of %s: %v", configurationKey, where, err)
	}
	c, err = config.Load("")
	return c, unread, err
}
