package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// Changes are the values to set by setting; nil removes the value.
type Changes map[catalog.Name]*string

var (
	errNotNameValue = errors.New("must be <name>=<value>")
	errTwice        = errors.New("is given more than once")
)

func parseChanges(set, unset []string) (Changes, error) {
	found := Changes{}
	for _, text := range set {
		name, value, isPair := strings.Cut(text, "=")
		if !isPair {
			return nil, fmt.Errorf("--set %q: %w", text, errNotNameValue)
		}
		if err := found.Set(name, value); err != nil {
			return nil, fmt.Errorf("--set %w", err)
		}
	}
	for _, name := range unset {
		if err := found.Unset(name); err != nil {
			return nil, fmt.Errorf("--unset %w", err)
		}
	}
	return found, nil
}

// Set adds a value. The webhook's rule judges it.
func (c Changes) Set(name, value string) error { return c.add(name, &value) }

// Unset takes the value of a setting in Fairlead's own group away.
func (c Changes) Unset(name string) error { return c.add(name, nil) }

func (c Changes) add(name string, value *string) error {
	if _, err := cli.LookupSetting(name); err != nil {
		return err
	}
	if _, ok := c[catalog.Name(name)]; ok {
		return fmt.Errorf("setting %s %w", name, errTwice)
	}
	c[catalog.Name(name)] = value
	return nil
}

// own reports whether the change is in Fairlead's own group: the storage system does not have the setting,
// or the change removes Fairlead's value.
func (c Changes) own(name catalog.Name, f plan.Facts) bool {
	_, inOwn := f.OwnValues[name]
	_, inSystem := f.SystemValues[name]
	return !inSystem || inOwn && c[name] == nil
}

// command makes the change. Its text is safe to paste into a shell.
func (c Changes) command(name catalog.Name, f plan.Facts) string {
	group := longhorn.GroupVersion.Group
	if c.own(name, f) {
		group = v1alpha1.GroupVersion.Group
	}
	var patch strings.Builder
	encoder := json.NewEncoder(&patch)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(map[string]*string{"value": c[name]}) // strings can be encoded
	quoted := strings.ReplaceAll(strings.TrimSpace(patch.String()), "'", `'\''`)
	return fmt.Sprintf("kubectl -n %s patch settings.%s %s --type merge -p '%s'", f.Profile.Namespace, group, name, quoted)
}

// after returns the facts after the changes.
func (c Changes) after(f plan.Facts) plan.Facts {
	own, system := map[catalog.Name]string{}, map[catalog.Name]string{}
	maps.Copy(own, f.OwnValues)
	maps.Copy(system, f.SystemValues)
	for name, value := range c {
		values := system
		if c.own(name, f) {
			values = own
		}
		if value == nil {
			delete(values, name)
		} else {
			values[name] = *value
		}
	}
	f.OwnValues, f.SystemValues = own, system
	f.Values = catalog.Resolve(own, system, f.Profile.Name)
	return f
}
