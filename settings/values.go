package settings

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
	Text   string
	Source Source
}

// Disputed tells whether the storage system has the setting itself, and
// otherwise than the value in force: it builds and judges its components by its own.
func Disputed(values Values, system map[Name]string, name Name) bool {
	theirs, has := system[name]
	d, known := Lookup(string(name))
	if !has || !known || values[name].Source != SourceFairlead {
		return false
	}
	ours, err := d.Normalize(values[name].Text)
	if normal, badly := d.Normalize(theirs); err == nil && badly == nil {
		return ours != normal
	}
	return values[name].Text != theirs
}

// Values in force by name, one for each setting of the catalog.
type Values map[Name]Value

// Resolve returns the values in force: for one name, Fairlead's own setting
// wins over the storage system's, which wins over the default.
func Resolve(own, system map[Name]string, systemName string) Values {
	values := Values{}
	for _, d := range All() {
		if text, ok := own[d.Name]; ok {
			values[d.Name] = Value{text, SourceFairlead}
		} else if text, ok := system[d.Name]; ok {
			values[d.Name] = Value{text, Source(systemName)}
		} else {
			values[d.Name] = Value{d.Default, SourceDefault}
		}
	}
	return values
}
