package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// Part of the manifests that installs an entry and the rights of its rule.
type Part string

// Parts. The base has Longhorn's; each other is a component of the same name.
const (
	PartLonghorn Part = "longhorn"
	PartFencing  Part = "fencing"
	PartNFS      Part = "nfs"
)

// Route is one row of the table of routes: what the API server asks, which rule answers, and what the rule may read. The manifests
// of webhooks and of the webhook's rights, and the tables of docs/reference/webhooks.md, are generated from the rows.
type Route struct {
	registration.Entry
	Part Part
	// For which objects, and what happens to them while Fairlead is Down: cells of the table in the docs.
	For, Down string
	// Cluster and Here are the rights that the rule needs: in the whole cluster, and in Longhorn's namespace.
	Cluster, Here []rbacv1.PolicyRule

	rule func(served) named
}

// Routes is the table: for Longhorn, fenced storage systems and NFS drivers.
func Routes(n longhorn.Names, fenced []profiles.Profile, nfsDrivers []string) []Route {
	return slices.Concat(longhornRoutes(n), fencingRoutes(fenced), nfsRoutes(nfsDrivers))
}

// Installed is the table of the manifests.
func Installed() []Route { return Routes(longhorn.DefaultNames(), profiles.All(), NFSDrivers()) }

// Entries of these parts, of routes.
func Entries(routes []Route, parts ...Part) []registration.Entry {
	var entries []registration.Entry
	for _, r := range routes {
		if slices.Contains(parts, r.Part) {
			entries = append(entries, r.Entry)
		}
	}
	return entries
}

// served is what the rules of the table are served with.
type served struct {
	longhorn *Longhorn
	fencing  *Fencing
	nfs      *NFS
	// use is one read for the rules of networks and of requests for networks.
	use *lists.Shared[networkUse]
}

func (s served) fences() bool { return s.fencing != nil && s.fencing.On() }

func (s served) servesNFS() bool { return s.nfs != nil && len(s.nfs.Live.Drivers) > 0 }

// named gives a rule its name, which metrics and logs have.
type named func(name string) admission.Entry

// when returns a rule that allows everything if it is not on: a webhook configuration may still have its entry.
func when[V any](on bool, rule admission.Rule[V]) named {
	if !on {
		rule.Decide = func(context.Context, *admission.Request[V]) (admission.Decision, error) {
			return admission.FromMutation(mutators.Result{Outcome: mutators.Unchanged, Reason: "duty is off"}), nil
		}
	}
	return func(name string) admission.Entry {
		rule.Name = name
		return rule
	}
}

// Rules are the rules of the table by the paths of their entries. Rules of what is nil allow everything.
func Rules(l *Longhorn, fencing *Fencing, nfs *NFS) map[string]admission.Entry {
	if l == nil {
		l = &Longhorn{Duties: config.Duties{Settings: config.Off}}
	}
	if fencing != nil && fencing.On() {
		fencing.waits = make(chan struct{}, maxWaits)
	}
	s := served{longhorn: l, fencing: fencing, nfs: nfs, use: lists.NewShared(l.networkUse)}
	rules := map[string]admission.Entry{}
	for _, r := range Installed() {
		rules[r.Path] = r.rule(s)(strings.TrimPrefix(strings.TrimPrefix(r.Path, "/mutate/"), "/validate/"))
	}
	return rules
}

// NewRouter serves the rules.
func NewRouter(l *Longhorn, fencing *Fencing, nfs *NFS, metrics *admission.Metrics, log *slog.Logger) http.Handler {
	router, limit := chi.NewRouter(), admission.NewLimit()
	router.Use(admission.Recoverer(log))
	for path, rule := range Rules(l, fencing, nfs) {
		router.Method(http.MethodPost, path, rule.Handler(limit, metrics, log))
	}
	return router
}
