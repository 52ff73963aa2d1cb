package settingsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/describe"
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
	answer(w, http.StatusOK, describe.List(states, unknown, c.names))
}

// get answers GET /v1/settings/{name}.
func (a *api) get(w http.ResponseWriter, r *http.Request) {
	if c, s, ok := a.named(w, r); ok {
		w.Header().Set("ETag", etag(s))
		answer(w, http.StatusOK, describe.Setting(s, c.names))
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
			shown := describe.Setting(s, c.names)
			shown.Warnings = c.warnings.texts
			w.Header().Set("ETag", etag(s))
			answer(w, http.StatusOK, shown)
		}
	}
}

// named returns the caller and the setting that a request names.
func (a *api) named(w http.ResponseWriter, r *http.Request) (c caller, s describe.State, ok bool) {
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

func (a *api) state(w http.ResponseWriter, ctx context.Context, c caller, name string) (describe.State, bool) {
	states, _, err := c.reader().SettingStates(ctx)
	if err != nil {
		a.refuseReading(w, err)
		return describe.State{}, false
	}
	i := slices.IndexFunc(states, func(s describe.State) bool { return string(s.Name) == name })
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

// change writes the value to the storage system's object of the setting if there is one, else to Fairlead's own.
// A conditional change is refused if the object is not as it was read.
func (c caller) change(ctx context.Context, s describe.State, value string, conditional bool) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Setting"))
	object.SetNamespace(c.names.Namespace)
	object.SetName(string(s.Name))
	revision := ""
	switch {
	case s.System != nil:
		object.SetGroupVersionKind(longhorn.GroupVersion.WithKind("Setting"))
		revision = s.System.ResourceVersion
	case s.Own != nil:
		revision = s.Own.ResourceVersion
	default:
		object.Object["value"] = value
		return c.client.Create(ctx, object)
	}
	metadata := map[string]string{}
	if conditional {
		metadata["resourceVersion"] = revision
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "value": value})
	if err != nil {
		return fmt.Errorf("writing the request: %w", err)
	}
	return c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// etag combines the resource versions of Fairlead's object and of the storage
// system's object, "-" if there is none. Each change of either object, also of a
// status, changes the tag.
func etag(s describe.State) string {
	own, system := "-", "-"
	if s.Own != nil {
		own = s.Own.ResourceVersion
	}
	if s.System != nil {
		system = s.System.ResourceVersion
	}
	return fmt.Sprintf("%q", own+"."+system)
}

// matches reports whether one tag of an If-Match header is the setting's tag (RFC
// 9110, 13.1.1). A setting of the catalog always exists, so "*" matches.
func matches(header []string, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if candidate = strings.TrimSpace(candidate); candidate == "*" || candidate == tag {
			return true
		}
	}
	return false
}
