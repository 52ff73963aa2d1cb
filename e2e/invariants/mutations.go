package invariants

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/multus"
)

// mutatedWrongly: Fairlead's webhooks change an object once, and no more of it than they
// have to; what they change stays valid, and names no network twice.
func mutatedWrongly(_ *state, e event) []string {
	var found []string
	seen := map[string]bool{}
	for _, p := range patches(e) {
		if seen[p.Webhook] {
			found = append(found, fmt.Sprintf("webhook %s changes the object twice", p.Webhook))
		}
		seen[p.Webhook] = true
		if e.Code == http.StatusUnprocessableEntity {
			found = append(found, fmt.Sprintf("what webhook %s has changed is not valid (%s)", p.Webhook, e.Message))
		}
		for _, operation := range p.Patch {
			if text := wasteful(operation, e.Request); text != "" {
				found = append(found, fmt.Sprintf("webhook %s %s", p.Webhook, text))
			}
		}
	}
	if e.created() {
		networks, err := multus.ParseSelections(e.after.GetAnnotations()[multus.NetworksAnnotation], e.after.GetNamespace())
		for i, n := range networks {
			if slices.Contains(networks[:i], n) {
				found = append(found, fmt.Sprintf("network %s is asked for twice", n))
			}
		}
		if err != nil {
			found = append(found, err.Error())
		}
	}
	return found
}

// patch of a webhook, as the API server records it.
type patch struct {
	Configuration, Webhook string
	Patch                  []operation
}

type operation struct {
	Op, Path string
	Value    json.RawMessage
}

// patches are those of Fairlead's webhooks.
func patches(e event) []patch {
	var found []patch
	for key, text := range e.Annotations {
		var p patch
		if strings.HasPrefix(key, "patch.webhook.admission.k8s.io/") && json.Unmarshal([]byte(text), &p) == nil && p.Configuration == "fairlead" {
			found = append(found, p)
		}
	}
	return found
}

// wasteful says how an operation does more than it has to: it writes a whole section,
// or what the request has already.
func wasteful(o operation, request json.RawMessage) string {
	steps := strings.Split(strings.TrimPrefix(o.Path, "/"), "/")
	if len(steps) < 2 && o.Path != "/value" {
		return fmt.Sprintf("writes all of %q", o.Path)
	}
	var at, value any
	if o.Op == "remove" || json.Unmarshal(request, &at) != nil || json.Unmarshal(o.Value, &value) != nil {
		return ""
	}
	for _, step := range steps {
		object, ok := at.(map[string]any)
		if !ok {
			return "" // in a list, or nothing there yet
		}
		at = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	if at != nil && reflect.DeepEqual(at, value) {
		return fmt.Sprintf("writes the present value at %s", o.Path)
	}
	return ""
}
