package validators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func checkValue(d catalog.Definition, value string, facts SettingFacts) field.ErrorList {
	path := field.NewPath("value")
	if trimmed := strings.TrimSpace(value); trimmed != value && d.Parse(trimmed) == nil {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must not begin or end with white space; write %q", trimmed))}
	}
	err := d.Parse(value)
	if err == nil {
		return nil
	}
	detail := err.Error()
	if d.NamesNetwork {
		detail += hint(facts.Rollout.Networks) + catalog.OrClusterNetwork
	}
	return field.ErrorList{field.Invalid(path, value, detail)}
}

// maxHinted is how many networks a message names.
const maxHinted = 8

// hint names the networks in the cluster; "" if they are not known.
func hint(networks map[multus.Network]bool) string {
	if networks == nil {
		return ""
	}
	if len(networks) == 0 {
		return " (no network exists yet)"
	}
	var names []string
	for n := range networks {
		names = append(names, n.String())
	}
	slices.Sort(names)
	if more := len(names) - maxHinted; more > 0 {
		names = append(names[:maxHinted], fmt.Sprintf("and %d more", more))
	}
	return " (in this cluster: " + strings.Join(names, ", ") + ")"
}

func (v *Verdict) checkNetworkExists(d catalog.Definition, value string, facts SettingFacts) {
	there := facts.Rollout.Networks
	if !d.NamesNetwork || there == nil {
		return
	}
	network, err := multus.ParseNetwork(value)
	if err != nil || network.IsZero() {
		return
	}
	if there[network] {
		if doubt := facts.Rollout.Doubt(network); doubt != "" {
			v.warn("%s", doubt)
		}
		return
	}
	message := fmt.Sprintf("there is no NetworkAttachmentDefinition %s%s; pods that request the network do not start until you create it", network, hint(there))
	if _, broken := there[network]; broken {
		message = catalog.NetworkProblem(network, there)
	}
	if facts.MissingPolicy == settings.Refuse {
		v.refuse(ReasonNoSuchNetwork, field.Invalid(field.NewPath("value"), value, message))
		return
	}
	v.warn("%s", message)
}

// checkReadOnly refuses a change that only the storage system may make. Creation is allowed: the storage system creates
// the setting when it starts, and does not start if it can't.
func (v *Verdict) checkReadOnly(d catalog.Definition, s Setting, old *Setting, facts SettingFacts) {
	if facts.Own || !d.ReadOnly || old == nil || old.Value != nil && *old.Value == *s.Value {
		return
	}
	if _, allowed := s.Metadata.Annotations[longhorn.OwnUpdateAnnotation]; allowed {
		return
	}
	v.refuse(ReasonReadOnly, field.Forbidden(field.NewPath("metadata", "name"),
		fmt.Sprintf("setting %s is read-only: only Longhorn writes its value", d.Name)))
}
