// Package webhook routes admission reviews to the rules of mutators and validators, and gathers the facts of each rule.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// routes are rules by their paths.
type routes map[string]admission.Entry

// NewRouter serves the rules.
func NewRouter(clusterDomain string, longhorn *Longhorn, fencing *Fencing, nfs *NFS, metrics *admission.Metrics, log *slog.Logger) http.Handler {
	return serveRoutes(Rules(clusterDomain, longhorn, fencing, nfs), metrics, log)
}

func serveRoutes(rules routes, metrics *admission.Metrics, log *slog.Logger) http.Handler {
	router, limit := chi.NewRouter(), admission.NewLimit()
	router.Use(admission.Recoverer(log))
	for path, rule := range rules {
		router.Method(http.MethodPost, path, rule.Handler(limit, metrics, log))
	}
	return router
}

// Rules are the rules for Longhorn, of fencing and of NFS services, by the paths of their entries. Rules of what is nil allow
// everything.
func Rules(clusterDomain string, longhorn *Longhorn, fencing *Fencing, nfs *NFS) map[string]admission.Entry {
	r := routes{}
	longhorn.routes(r, clusterDomain)
	fencing.routes(r)
	nfs.routes(r)
	return r
}

func (l *Longhorn) routes(r routes, clusterDomain string) {
	if l == nil {
		l = &Longhorn{Duties: config.Duties{Settings: config.Off}}
	}
	pods, services, settings := l.Duties.Pods == config.On, l.Duties.Services == config.On, l.Duties.Settings != config.Off
	// If Longhorn rolls out by itself, clients stay as it builds them.
	clients := pods && l.Duties.Settings == config.Apply
	serve(r, registration.MutatePath(registration.EntryClientPods), clients, l.clientPods())
	serve(r, registration.MutatePath(registration.EntryClientTemplate), clients, l.clientTemplate())
	serve(r, registration.MutatePath(registration.EntryServerPods), pods, l.serverPods())
	serve(r, registration.MutatePath(registration.EntryServices), services, l.services())
	serve(r, registration.MutatePath(registration.EntryShareManagers), services, l.shareManagers(clusterDomain))
	serve(r, registration.MutatePath(registration.EntrySettingStatus), l.Duties.Settings == config.Apply, l.settingStatus())
	serve(r, registration.ValidatePath(registration.EntrySettings), settings, l.settings())
	serve(r, registration.ValidatePath(registration.EntryInstanceManagerDeletions), settings, l.instanceManagerDeletions())
	serve(r, registration.StraySettingsPath, settings, l.straySettings())
	use := lists.NewShared(l.networkUse)
	serve(r, registration.NetworksPath, l.Duties.Networks == config.On, l.networks(use))
	serve(r, registration.VolumeNetworksPath, l.Duties.ServesVolumeNetworks(), l.volumeNetworks(use))
}

// serve adds a rule under the name of its path. The rule of a duty that is off allows everything: a webhook
// configuration may still have its entry.
func serve[V any](r routes, path string, on bool, rule admission.Rule[V]) {
	if !on {
		rule.Decide = func(context.Context, *admission.Request[V]) (admission.Decision, error) {
			return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: "duty is off"}), nil
		}
	}
	rule.Name = strings.TrimPrefix(strings.TrimPrefix(path, "/mutate/"), "/validate/")
	r[path] = rule
}
