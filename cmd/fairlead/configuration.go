package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/webhook"
)

// Where the manifests keep the configuration.
const (
	configurationMap = "fairlead"
	configurationKey = "configuration.yaml"
)

// configuration is that of the file, if one is given, else the one that the
// cluster's Fairlead reads. unread says why the defaults stand in for it.
func (o *clientOptions) configuration(ctx context.Context, objects client.Reader) (c *config.Configuration, unread string, err error) {
	if o.configFile != "" {
		c, err = config.Load(o.configFile)
		return c, "", err
	}
	var m corev1.ConfigMap
	where := fmt.Sprintf("ConfigMap %s/%s", webhook.Namespace, configurationMap)
	err = objects.Get(ctx, client.ObjectKey{Namespace: webhook.Namespace, Name: configurationMap}, &m)
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
