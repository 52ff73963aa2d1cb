package settingsapi

import (
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const changedMeanwhile = "the setting is not as it was when you read it: read it again, and send the new ETag"

// put answers PUT /v1/settings/{name}: it changes the value as the caller, and
// returns the state of the setting after the change.
func (a *api) put(w http.ResponseWriter, r *http.Request) {
	p, name, ok := a.named(w, r)
	if !ok {
		return
	}
	value, ok := readChange(w, r)
	// A caller without the right to read the setting must not learn its state from a change.
	if !ok || !a.authorized(w, r, toRead("get", p, name)) {
		return
	}
	s, ok := a.state(w, r.Context(), p, name)
	if !ok {
		return
	}
	precondition := r.Header.Values("If-Match")
	conditional := len(precondition) > 0
	if conditional && !matches(precondition, etag(s)) {
		refuse(w, http.StatusPreconditionFailed, metav1.StatusReasonConflict, changedMeanwhile)
		return
	}
	t, c := targetOf(s, p), callerOf(r.Context())
	if !a.authorized(w, r, t.permission()) {
		return
	}
	warnings, err := a.writer.write(r.Context(), c.token, t, value, conditional)
	switch {
	case conditional && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)):
		refuse(w, http.StatusPreconditionFailed, metav1.StatusReasonConflict, changedMeanwhile)
		return
	case err != nil:
		a.Log.Info("a change was not taken", "setting", name, "group", t.Group, "user", c.Username, "error", err)
		refuseAs(w, err)
		return
	}
	a.Log.Info("a setting was changed", "setting", name, "group", t.Group, "user", c.Username)
	if s, ok = a.state(w, r.Context(), p, name); !ok {
		return
	}
	shown := Describe(s, p.Profile)
	shown.Warnings = warnings
	w.Header().Set("ETag", etag(s))
	answer(w, http.StatusOK, shown)
}
