package catalog

import "fmt"

// Source of a value in force. It is SourceFairlead, SourceDefault or the name
// of the profile whose storage system has the setting.
type Source string

// Sources that are no storage system.
const (
	SourceFairlead Source = "fairlead"
	SourceDefault  Source = "default"
)

// Explain says where a value comes from in words.
func (s Source) Explain() string {
	switch s {
	case SourceFairlead:
		return "as Fairlead's own setting says"
	case SourceDefault:
		return "the default"
	}
	return "as the setting of " + string(s) + " says"
}

// Value in force, and where it comes from.
type Value struct {
	// Text as it was written.
	Text   string
	Source Source
	// Problem says why the value asks for nothing, although it may be well formed:
	// Fairlead's own group has a value too, and not the same.
	Problem string
}

// Values in force by name, one for each setting of the catalog.
type Values map[Name]Value

// Normal returns the value of a setting in its normal form. The error says why
// nothing is done for the value until it is corrected.
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

// Same tells whether two values mean the same, in whatever spelling.
func (d Definition) Same(a, b string) bool {
	one, err := d.Normalize(a)
	other, bad := d.Normalize(b)
	if err != nil || bad != nil {
		return a == b
	}
	return one == other
}

// Resolve returns the values in force. A setting has one home: the storage
// system's group where that has the setting, else Fairlead's own; see NotAtHome.
func Resolve(own, system map[Name]string, systemName string) Values {
	values := make(Values, len(all))
	for _, d := range all {
		ours, set := own[d.Name]
		theirs, has := system[d.Name]
		v := Value{Text: d.Default, Source: SourceDefault}
		why := d.NotAtHome(system, systemName)
		switch {
		case has:
			v = Value{Text: theirs, Source: Source(systemName)}
		case set && why == "":
			v = Value{Text: ours, Source: SourceFairlead}
		}
		if set && why != "" && !(has && d.Same(ours, theirs)) {
			v.Problem = fmt.Sprintf("settings.fairlead.io %s has value %q, and %s. Take the value in settings.fairlead.io away", d.Name, ours, why)
		}
		values[d.Name] = v
	}
	return values
}

// NotAtHome says why Fairlead's own group is not where a setting is to be set, and
// where it is; "" if it is. A second home would be a second value for what the
// storage system builds by the value that it has itself.
func (d Definition) NotAtHome(system map[Name]string, systemName string) string {
	if _, has := system[d.Name]; has {
		return fmt.Sprintf("%s has this setting itself: set it in settings.%[1]s.io", systemName)
	}
	if _, has := system[d.ReplacedBy]; has {
		return fmt.Sprintf("%s has %s in its place: set that in settings.%[1]s.io", systemName, d.ReplacedBy)
	}
	switch {
	case d.ByFairlead:
		return ""
	case d.Until != "":
		return fmt.Sprintf("this %s does not have the setting (only versions from %s, before %s), and it alone goes by it", systemName, d.Since, d.Until)
	}
	return fmt.Sprintf("this %s does not have the setting (versions from %s on do), and it alone goes by it: upgrade it first", systemName, d.Since)
}
