package settingsapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// list answers GET /v1/settings.
func (a *api) list(w http.ResponseWriter, r *http.Request) {
	c, ok := a.caller(w, r)
	if !ok {
		return
	}
	states, unknown, err := c.reader().SettingStates(r.Context())
	if err != nil {
		a.refuseReading(w, err)
		return
	}
	answer(w, http.StatusOK, DescribeAll(states, unknown, c.profile))
}

// get answers GET /v1/settings/{name}.
func (a *api) get(w http.ResponseWriter, r *http.Request) {
	if c, s, ok := a.named(w, r); ok {
		w.Header().Set("ETag", etag(s))
		answer(w, http.StatusOK, Describe(s, c.profile))
	}
}

const changedMeanwhile = "the setting is not as it was when you read it: read it again, and send the new ETag"

// put answers PUT /v1/settings/{name}: it changes the value, and returns the state of the setting after the change.
func (a *api) put(w http.ResponseWriter, r *http.Request) {
	value, ok := readChange(w, r)
	if !ok {
		return
	}
	c, s, ok := a.named(w, r)
	if !ok {
		return
	}
	precondition := r.Header.Values("If-Match")
	conditional := len(precondition) > 0
	if conditional && !matches(precondition, etag(s)) {
		refuse(w, http.StatusPreconditionFailed, metav1.StatusReasonConflict, changedMeanwhile)
		return
	}
	err := c.change(r.Context(), s, value, conditional)
	switch {
	case conditional && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)):
		refuse(w, http.StatusPreconditionFailed, metav1.StatusReasonConflict, changedMeanwhile)
	case err != nil:
		a.Log.Info("a change was not taken", "setting", s.Name, "error", err)
		refuseAs(w, err)
	default:
		a.Log.Info("a setting was changed", "setting", s.Name)
		if s, ok = a.state(w, r.Context(), c, string(s.Name)); ok {
			shown := Describe(s, c.profile)
			shown.Warnings = c.warnings.texts
			w.Header().Set("ETag", etag(s))
			answer(w, http.StatusOK, shown)
		}
	}
}

// named returns the caller and the setting that a request names.
func (a *api) named(w http.ResponseWriter, r *http.Request) (c caller, s cluster.SettingState, ok bool) {
	if c, ok = a.caller(w, r); !ok {
		return c, s, false
	}
	name := chi.URLParam(r, "name")
	if _, known := catalog.Lookup(name); !known {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("Fairlead knows no setting %q: GET /v1/settings lists those it knows", name))
		return c, s, false
	}
	s, ok = a.state(w, r.Context(), c, name)
	return c, s, ok
}

func (a *api) state(w http.ResponseWriter, ctx context.Context, c caller, name string) (cluster.SettingState, bool) {
	states, _, err := c.reader().SettingStates(ctx)
	if err != nil {
		a.refuseReading(w, err)
		return cluster.SettingState{}, false
	}
	i := slices.IndexFunc(states, func(s cluster.SettingState) bool { return string(s.Name) == name })
	return states[i], true // every setting of the catalog has one
}

// refuseReading passes on that the caller is unknown or lacks a right.
func (a *api) refuseReading(w http.ResponseWriter, err error) {
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		refuseAs(w, err)
		return
	}
	a.Log.Error("reading settings", "error", err)
	refuse(w, http.StatusBadGateway, metav1.StatusReasonInternalError, "the settings could not be read from the API server; see Fairlead's log")
}
