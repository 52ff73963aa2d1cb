package validators

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
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
		detail += facts.hint() + `, or "" for the cluster network`
	}
	return field.ErrorList{field.Invalid(path, value, detail)}
}

// maxHinted is how many networks a message names.
const maxHinted = 8

func (f SettingFacts) hint() string {
	if !f.NetworksKnown {
		return ""
	}
	return hint(f.Networks)
}

// hint names the networks in the cluster.
func hint(networks []storage.Network) string {
	if len(networks) == 0 {
		return " (this cluster has none yet)"
	}
	var names []string
	for _, n := range networks {
		names = append(names, n.String())
	}
	slices.Sort(names)
	if more := len(names) - maxHinted; more > 0 {
		names = append(names[:maxHinted], fmt.Sprintf("and %d more", more))
	}
	return " (in this cluster: " + strings.Join(names, ", ") + ")"
}

func (v *Verdict) checkNetworkExists(d catalog.Definition, value string, facts SettingFacts) {
	if !d.NamesNetwork || !facts.NetworksKnown {
		return
	}
	network, err := storage.ParseNetwork(value)
	if err != nil || network.IsZero() || slices.Contains(facts.Networks, network) {
		return
	}
	message := fmt.Sprintf("there is no NetworkAttachmentDefinition %s%s; pods that request the network do not start until you create it", network, facts.hint())
	if facts.MissingPolicy == Refuse {
		v.refuse(ReasonNoSuchNetwork, field.Invalid(field.NewPath("value"), value, message))
		return
	}
	v.warn("%s", message)
}
