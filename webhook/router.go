// Package webhook routes admission reviews to the rules of mutators and validators, and gathers the facts of each rule.
package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// routes are rules by their paths.
type routes map[string]admission.Entry

// NewRouter serves the rules.
func NewRouter(c *config.Configuration, profiles []Profile, fencing *Fencing, nfs *NFS, metrics *admission.Metrics, log *slog.Logger) http.Handler {
	return serveRoutes(Rules(c, profiles, fencing, nfs), metrics, log)
}

func serveRoutes(rules routes, metrics *admission.Metrics, log *slog.Logger) http.Handler {
	router, limit := chi.NewRouter(), admission.NewLimit()
	router.Use(admission.Recoverer(log))
	for path, rule := range rules {
		router.Method(http.MethodPost, path, rule.Handler(limit, metrics, log))
	}
	return router
}

// Rules are the rules of all profiles, of fencing and of NFS services, by the paths of their entries. If fencing or nfs
// is nil, its rules allow everything.
func Rules(c *config.Configuration, profiles []Profile, fencing *Fencing, nfs *NFS) map[string]admission.Entry {
	r, reads := routes{}, newNetworkReads(profiles)
	var withNetworks, withVolumeNetworks, withSettings []Profile
	for _, p := range profiles {
		pods, services := p.Duties.Pods == config.On, p.Duties.Services == config.On
		// If the storage system rolls out by itself, clients stay as it builds them.
		clients := pods && p.Duties.Settings == config.Apply
		serve(r, registration.MutatePath(p.Name, registration.EntryClientPods), clients, p.clientPods())
		serve(r, registration.MutatePath(p.Name, registration.EntryClientTemplate), clients, p.clientTemplate())
		serve(r, registration.MutatePath(p.Name, registration.EntryServerPods), pods, p.serverPods())
		serve(r, registration.MutatePath(p.Name, registration.EntryServices), services, p.services())
		serve(r, registration.MutatePath(p.Name, registration.EntryShareManagers), services, p.shareManagers(c.ClusterDomain))
		serve(r, registration.MutatePath(p.Name, registration.EntrySettingStatus), p.Duties.Settings == config.Apply, p.settingStatus())
		serve(r, registration.ValidatePath(p.Name, registration.EntrySettings), p.Duties.Settings != config.Off, p.settings(c.Networks.Missing))
		if p.Duties.Settings != config.Off {
			withSettings = append(withSettings, p)
		}
		serve(r, registration.ValidatePath(p.Name, registration.EntryInstanceManagerDeletions), p.Duties.Settings != config.Off, p.instanceManagerDeletions())
		if p.Duties.Networks == config.On {
			withNetworks = append(withNetworks, p)
		}
		if p.Duties.ServesVolumeNetworks() {
			withVolumeNetworks = append(withVolumeNetworks, p)
		}
	}
	serve(r, registration.StraySettingsPath, len(withSettings) > 0, straySettings(withSettings))
	serve(r, registration.NetworksPath, len(withNetworks) > 0, networks(withNetworks, reads, c.Networks.InUse))
	serve(r, registration.VolumeNetworksPath, len(withVolumeNetworks) > 0, volumeNetworks(withVolumeNetworks, reads, c.Networks.Missing))
	fencing.routes(r)
	nfs.routes(r)
	return r
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
