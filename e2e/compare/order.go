package compare

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

// order is what Longhorn wrote in a step, in its order, by lanes: what different controllers write at the same time has none.
// There is a lane for each volume, and one for the settings.
func order(writes []sandbox.Write, namespace string) map[string]any {
	lanes := map[string]any{}
	for _, w := range writes {
		if w.Namespace != namespace || w.Writer() != "longhorn-service-account" || !w.Changed {
			continue
		}
		lane, text := laneOf(w)
		if lane == "" {
			continue
		}
		texts, _ := lanes[lane].([]any)
		lanes[lane] = inAnyOrder(append(texts, text), "update deployments/")
	}
	return lanes
}

// inAnyOrder moves the last text to its place among those before it that have the
// same beginning: Longhorn goes through its Deployments as its cache lists them,
// which is another order each time.
func inAnyOrder(texts []any, beginning string) []any {
	for i := len(texts) - 1; i > 0; i-- {
		before, _ := texts[i-1].(string)
		last, _ := texts[i].(string)
		if !strings.HasPrefix(before, beginning) || !strings.HasPrefix(last, beginning) || before <= last {
			break
		}
		texts[i-1], texts[i] = texts[i], texts[i-1]
	}
	return texts
}

// laneOf a write, and what it did, in words; no lane for what is not compared.
func laneOf(w sandbox.Write) (lane, text string) {
	verb := w.Verb
	if verb == "patch" {
		verb = "update" // the stand-in patches
	}
	text = verb + " " + w.Resource + "/" + w.Name
	switch w.Resource {
	case "services":
		return w.Name, text
	case "pods":
		volume, found := strings.CutPrefix(w.Name, "share-manager-")
		if !found {
			return "", ""
		}
		return volume, text
	case "daemonsets", "deployments":
		return "settings", text
	case "settings/status":
		return "settings", text + " " + applied(w.Response)
	}
	return "", ""
}

func applied(object json.RawMessage) string {
	var setting struct{ Status struct{ Applied bool } }
	if err := json.Unmarshal(object, &setting); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("applied=%v", setting.Status.Applied)
}
