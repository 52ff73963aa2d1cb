package main

import (
	"log/slog"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	controllermetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/controllers/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// setupOndat registers the controller of Ondat's shared volumes.
func setupOndat(mgr manager.Manager, c *config.Ondat, writer *frontend.Writer, log *slog.Logger) error {
	api, err := rest.New(rest.Options{
		Endpoint: c.APIEndpoint, CAFile: c.CAFile, SecretPath: c.APISecretPath,
		Timeout: c.APITimeout.Duration, LoginTimeout: 2 * c.APITimeout.Duration, Refresh: c.APIRefreshInterval.Duration, Registry: controllermetrics.Registry,
	})
	if err != nil {
		return err
	}
	r := &ondat.Reconciler{
		Options: ondat.Options{
			Interval: c.APIPollInterval.Duration, Expiry: c.CacheExpiryInterval.Duration, Retry: c.APIRetryInterval.Duration,
			CreatePoll: c.K8sCreatePollInterval.Duration, CreateWait: c.K8sCreateWaitDuration.Duration, Naming: c.ServiceName, Concurrency: c.Concurrency,
		},
		API: api, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Writer: writer, Events: mgr.GetEventRecorder("storageos-api-manager"), Clock: clock.RealClock{}, Log: log,
	}
	return r.SetupWithManager(mgr)
}
