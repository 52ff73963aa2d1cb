package catalog

import (
	"fmt"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Source of a value in effect.
type Source string

// Sources: Longhorn's own setting, Fairlead's, or neither.
const (
	SourceLonghorn Source = longhorn.Name
	SourceFairlead Source = "fairlead"
	SourceDefault  Source = "default"
)

// Explain describes the source in words.
func (s Source) Explain() string {
	switch s {
	case SourceFairlead:
		return "as Fairlead's own setting says"
	case SourceDefault:
		return "the default"
	}
	return "as Longhorn's setting says"
}

// Value in effect, and its source.
type Value struct {
	// Text as written.
	Text   string
	Source Source
	// Problem says why the value asks for nothing, even if it is well formed: Fairlead's own group has a conflicting value.
	Problem string
}

// Values in effect by name, one for each setting of the catalog.
type Values map[Name]Value

// Normal returns the value of a setting in its normal form. The error says why the value asks for nothing.
func (v Values) Normal(d Definition) (string, error) {
	value := v[d.Name]
	if value.Problem != "" {
		return "", malformed{form: value.Problem}
	}
	normal, err := d.Normalize(value.Text)
	if err != nil {
		return "", fmt.Errorf("value %q %w", value.Text, err)
	}
	return normal, nil
}

// Same reports whether two values have the same normal form.
func (d Definition) Same(a, b string) bool {
	normalA, errA := d.Normalize(a)
	normalB, errB := d.Normalize(b)
	if errA != nil || errB != nil {
		return a == b
	}
	return normalA == normalB
}

// Resolve returns the values in effect. A setting has one home: the storage system's
// group if it has the setting, else Fairlead's own group; see NotAtHome.
func Resolve(own, system map[Name]string) Values {
	values := make(Values, len(all))
	for _, d := range all {
		ours, set := own[d.Name]
		theirs, has := system[d.Name]
		v := Value{Text: d.Default, Source: SourceDefault}
		why := d.NotAtHome(system)
		switch {
		case has:
			v = Value{Text: theirs, Source: SourceLonghorn}
		case set && why == "":
			v = Value{Text: ours, Source: SourceFairlead}
		}
		if set && why != "" && !(has && d.Same(ours, theirs)) {
			v.Problem = fmt.Sprintf("settings.fairlead.io %s has value %q, but %s. Clear the value in settings.fairlead.io", d.Name, ours, why)
		}
		values[d.Name] = v
	}
	return values
}

// NotAtHome says why the setting cannot be set in Fairlead's own group, and what to do; "" if it can.
// The storage system builds components only by its own value, so a second value would have no effect.
func (d Definition) NotAtHome(system map[Name]string) string {
	if _, has := system[d.Name]; has {
		return "Longhorn has this setting itself: set it in settings.longhorn.io"
	}
	if _, has := system[d.ReplacedBy]; has {
		return fmt.Sprintf("Longhorn has setting %s instead: set %[1]s in settings.longhorn.io", d.ReplacedBy)
	}
	switch {
	case d.ByFairlead:
		return ""
	case d.Until != "":
		return fmt.Sprintf("only Longhorn uses the setting, and the installed version does not have it (versions from %s, before %s, have it)", d.Since, d.Until)
	}
	return fmt.Sprintf("only Longhorn uses the setting, and the installed version does not have it (versions from %s have it): upgrade Longhorn first", d.Since)
}
