package settingsapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// list answers GET /v1/settings.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	p, ok := a.profile(w, r)
	if !ok || !a.authorized(w, r, toRead("list", p, "")) {
		return
	}
	if states, unknown, ok := a.states(w, r.Context(), p); ok {
		answer(w, http.StatusOK, DescribeAll(states, unknown, p.Profile))
	}
}

// get answers GET /v1/settings/{name}.
func (a *api) get(w http.ResponseWriter, r *http.Request) {
	p, name, ok := a.named(w, r)
	if !ok || !a.authorized(w, r, toRead("get", p, name)) {
		return
	}
	s, ok := a.state(w, r.Context(), p, name)
	if !ok {
		return
	}
	w.Header().Set("ETag", etag(s))
	answer(w, http.StatusOK, Describe(s, p.Profile))
}

// profile returns the profile that the query names, else the first.
func (a *api) profile(w http.ResponseWriter, r *http.Request) (Profile, bool) {
	query := r.URL.Query()
	if !query.Has("profile") {
		return a.Profiles[0], true
	}
	i := slices.IndexFunc(a.Profiles, func(p Profile) bool { return p.Name == query.Get("profile") })
	if i < 0 {
		var names []string
		for _, p := range a.Profiles {
			names = append(names, p.Name)
		}
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound,
			fmt.Sprintf("there is no profile %q: there is %s", query.Get("profile"), strings.Join(names, ", ")))
		return Profile{}, false
	}
	return a.Profiles[i], true
}

// named returns the profile and the setting that a request names.
func (a *api) named(w http.ResponseWriter, r *http.Request) (Profile, string, bool) {
	p, ok := a.profile(w, r)
	if !ok {
		return p, "", false
	}
	name := chi.URLParam(r, "name")
	if _, known := catalog.Lookup(name); !known {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("Fairlead knows no setting %q: GET /v1/settings lists those it knows", name))
		return p, "", false
	}
	return p, name, true
}

// states reads with Fairlead's own rights. The caller must have been authorized before.
func (a *api) states(w http.ResponseWriter, ctx context.Context, p Profile) ([]cluster.SettingState, []catalog.Name, bool) {
	states, unknown, err := p.Live.SettingStates(ctx)
	if err != nil {
		a.Log.Error("reading settings", "profile", p.Name, "error", err)
		refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the settings could not be read from the API server; see Fairlead's log")
	}
	return states, unknown, err == nil
}

func (a *api) state(w http.ResponseWriter, ctx context.Context, p Profile, name string) (cluster.SettingState, bool) {
	states, _, ok := a.states(w, ctx, p)
	if !ok {
		return cluster.SettingState{}, false
	}
	i := slices.IndexFunc(states, func(s cluster.SettingState) bool { return string(s.Name) == name })
	return states[i], true // every setting of the catalog has one
}
