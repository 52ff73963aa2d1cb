package ondat

import (
	"fmt"
	"log/slog"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// Setup registers the controller as the configuration says. The manager's cache must
// have been given to Caches, and hold the objects with label fairlead.io/nfs-service.
// It asks the control plane nothing: that may be down.
func Setup(mgr ctrl.Manager, c config.Ondat, log *slog.Logger) error {
	api, err := rest.New(rest.Options{
		Endpoint: c.APIEndpoint, CAFile: c.CAFile, SecretPath: c.APISecretPath,
		Timeout: c.APITimeout.Duration, Refresh: c.APIRefreshInterval.Duration,
		Registry: crmetrics.Registry,
	})
	if err != nil {
		return fmt.Errorf("building the client of Ondat's API: %w", err)
	}
	r := &Reconciler{
		Config: c, API: api, Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Writer: &frontend.Writer{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Log: log},
		Events: mgr.GetEventRecorder("fairlead"), Clock: clock.RealClock{}, Log: log,
	}
	return r.SetupWithManager(mgr)
}
