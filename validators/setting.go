package validators

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

// Setting is the view of a setting, the storage system's or Fairlead's own.
type Setting struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	// Value is nil where Fairlead's own setting leaves it to the storage system.
	Value *string `json:"value"`
}

// SettingFacts are the facts that a change of a setting is judged by, read live.
type SettingFacts struct {
	Profile storage.Profile
	// Own tells Fairlead's own settings from the storage system's.
	Own bool
	// OwnValues and SystemValues are the values before the change.
	OwnValues, SystemValues map[settings.Name]string
	// Networks in the cluster. NetworksKnown is false where they could not be listed.
	Networks      []storage.Network
	NetworksKnown bool
	MissingPolicy Strictness
	Record        settings.Record
	DaemonSet     settings.DaemonSet
	Volumes       []storage.Volume
	// Clients is the number of client pods.
	Clients int
	// Applies is false where Fairlead only guards: then it does not say what it will do.
	Applies bool
}

// ValidateSetting judges the creation or change of one of the settings that
// choose the network of shared volumes.
//
// A value that is not well formed is refused. A well-formed one is accepted,
// attached volumes or not: what it waits for is said in a warning.
// Source: proposal "Support non-disruptive volume-related setting updates".
func ValidateSetting(s Setting, facts SettingFacts) Verdict {
	definition, known := settings.Lookup(s.Metadata.Name)
	if !known {
		return unknownSetting(s, facts)
	}
	var v Verdict
	if s.Value != nil {
		v.Problems = append(v.Problems, checkValue(definition, *s.Value, facts)...)
		if len(v.Problems) > 0 {
			v.Reason = ReasonInvalidValue
			return v
		}
		v.checkNetworkExists(definition, *s.Value, facts)
	}
	v.checkEffect(definition, facts, func(own, system map[settings.Name]string) {
		values := system
		if facts.Own {
			values = own
		}
		delete(values, definition.Name)
		if s.Value != nil {
			values[definition.Name] = *s.Value
		}
	})
	return v
}

// ValidateSettingDeletion judges the deletion of a setting. The storage system's
// own can be changed, never deleted, as Longhorn has it. Fairlead's own can:
// then the storage system's value is in force again.
func ValidateSettingDeletion(name string, facts SettingFacts) Verdict {
	definition, known := settings.Lookup(name)
	if !known {
		return Verdict{Reason: ReasonValid}
	}
	if !facts.Own {
		return Verdict{Reason: ReasonNotDeletable, Problems: field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "name"),
			fmt.Sprintf("setting %s can be changed but not deleted; set its value to %q, the default, instead", name, definition.Default),
		)}}
	}
	var v Verdict
	v.checkEffect(definition, facts, func(own, _ map[settings.Name]string) { delete(own, definition.Name) })
	if now, then := facts.resolve(), facts.resolveWithout(definition.Name); now[definition.Name].Text != then[definition.Name].Text {
		v.Warnings = append([]string{fmt.Sprintf("%s is %q from now on (%s)", name, then[definition.Name].Text, then[definition.Name].Source.Explain())}, v.Warnings...)
	}
	return v
}

func unknownSetting(s Setting, facts SettingFacts) Verdict {
	if !facts.Own {
		return Verdict{Reason: ReasonValid} // the storage system's to judge
	}
	var names []string
	for _, d := range settings.All() {
		names = append(names, string(d.Name))
	}
	return Verdict{Reason: ReasonUnknown, Problems: field.ErrorList{
		field.NotSupported(field.NewPath("metadata", "name"), s.Metadata.Name, names),
	}}
}

func checkValue(d settings.Definition, value string, facts SettingFacts) field.ErrorList {
	path := field.NewPath("value")
	if trimmed := strings.TrimSpace(value); trimmed != value && d.Parse(trimmed) == nil {
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("must not have space around it; write %q", trimmed))}
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

// hintedNetworks is how many networks a message offers.
const hintedNetworks = 8

func (f SettingFacts) hint() string {
	if !f.NetworksKnown {
		return ""
	}
	return hint(f.Networks)
}

// hint lists the networks that could have been meant.
func hint(networks []storage.Network) string {
	if len(networks) == 0 {
		return " (this cluster has none yet)"
	}
	var names []string
	for _, n := range networks {
		names = append(names, n.String())
	}
	slices.Sort(names)
	if more := len(names) - hintedNetworks; more > 0 {
		names = append(names[:hintedNetworks], fmt.Sprintf("and %d more", more))
	}
	return " (in this cluster: " + strings.Join(names, ", ") + ")"
}

func (v *Verdict) checkNetworkExists(d settings.Definition, value string, facts SettingFacts) {
	if !d.NamesNetwork || !facts.NetworksKnown {
		return
	}
	network, err := storage.ParseNetwork(value)
	if err != nil || network.IsZero() || slices.Contains(facts.Networks, network) {
		return
	}
	message := fmt.Sprintf("there is no NetworkAttachmentDefinition %s%s; pods that ask for it do not start until it is created", network, facts.hint())
	if facts.MissingPolicy == Refuse {
		v.Reason = ReasonNoSuchNetwork
		v.Problems = append(v.Problems, field.Invalid(field.NewPath("value"), value, message))
		return
	}
	v.Warnings = append(v.Warnings, message)
}

func (f SettingFacts) resolve() settings.Values {
	return settings.Resolve(f.OwnValues, f.SystemValues, f.Profile.Name)
}

func (f SettingFacts) resolveWithout(name settings.Name) settings.Values {
	own := maps.Clone(f.OwnValues)
	delete(own, name)
	return settings.Resolve(own, f.SystemValues, f.Profile.Name)
}

// checkEffect compares the network of shared volumes after the change with what
// is recorded, and says what the change will do and what it waits for.
func (v *Verdict) checkEffect(d settings.Definition, facts SettingFacts, change func(own, system map[settings.Name]string)) {
	if v.Reason != "" {
		return
	}
	v.Reason = ReasonValid
	own, system := maps.Clone(facts.OwnValues), maps.Clone(facts.SystemValues)
	change(own, system)
	before, after := facts.resolve(), settings.Resolve(own, system, facts.Profile.Name)
	if !facts.Own && after[d.Name].Source == settings.SourceFairlead && after[d.Name].Text != system[d.Name] {
		v.Warnings = append(v.Warnings, fmt.Sprintf("has no effect: settings.fairlead.io %s says %q and wins", d.Name, after[d.Name].Text))
	}
	if !d.DangerZone {
		return
	}
	v.checkCombination(d, after)

	desired, err := settings.SharedVolumeNetwork(after, facts.Profile)
	if err != nil {
		v.Warnings = append(v.Warnings, fmt.Sprintf("nothing is applied until this is corrected: %v", err))
		return
	}
	was, err := settings.SharedVolumeNetwork(before, facts.Profile)
	settled := facts.Record.Clients == desired && facts.Record.Servers == desired
	if settled || (err == nil && was == desired && before[d.Name] == after[d.Name]) {
		return
	}
	if !facts.Applies {
		v.warnGuarded(d, facts)
		return
	}
	begin := settings.Rollout{Desired: desired, Record: facts.Record, DaemonSet: facts.DaemonSet, Volumes: facts.Volumes}
	if blockers := settings.Blockers(begin); len(blockers) > 0 {
		v.Reason = ReasonPending
		v.Warnings = append(v.Warnings, settings.PendingWarning(blockers, facts.Clients))
		return
	}
	v.Reason = ReasonApplies
	v.Warnings = append(v.Warnings, settings.RollingWarning(facts.Clients))
}

// warnGuarded says that nobody applies a setting that only Fairlead knows.
func (v *Verdict) warnGuarded(d settings.Definition, facts SettingFacts) {
	if facts.Own {
		v.Warnings = append(v.Warnings, fmt.Sprintf("Fairlead only guards settings here: %s applies %s of its own group; set that too", facts.Profile.Name, d.Name))
	}
}

func (v *Verdict) checkCombination(d settings.Definition, after settings.Values) {
	enabled := after[settings.StorageNetworkForRWX].Text == "true"
	network := after[settings.StorageNetwork].Text
	endpoint := after[settings.EndpointNetworkForRWX].Text
	switch {
	case d.Name == settings.StorageNetworkForRWX && enabled && network == "" && endpoint == "":
		v.Warnings = append(v.Warnings, fmt.Sprintf("has no effect until %s names a network", settings.StorageNetwork))
	case d.Name == settings.StorageNetworkForRWX && endpoint != "":
		v.Warnings = append(v.Warnings, fmt.Sprintf("has no effect while %s is %q, which wins", settings.EndpointNetworkForRWX, endpoint))
	}
}
