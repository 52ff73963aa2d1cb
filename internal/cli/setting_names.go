package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// ErrUnknownSetting is the error for a name that the catalog does not have.
var ErrUnknownSetting = errors.New("no setting that Fairlead knows")

// LookupSetting returns a setting; the error lists all names.
func LookupSetting(name string) (catalog.Definition, error) {
	d, known := catalog.Lookup(name)
	if !known {
		names := SettingNames()
		if suggestion := DidYouMean(name, names); suggestion != "" {
			return d, fmt.Errorf("%q: %w%s", name, ErrUnknownSetting, suggestion)
		}
		return d, fmt.Errorf("%q: %w; it knows:\n  %s", name, ErrUnknownSetting, strings.Join(names, "\n  "))
	}
	return d, nil
}

// SettingNames are the names of the catalog, in its order.
func SettingNames() []string {
	var names []string
	for _, d := range catalog.All() {
		names = append(names, string(d.Name))
	}
	return names
}

// CompleteSettings completes the names of settings, as a cobra.Command's ValidArgsFunction.
func CompleteSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return SettingNames(), cobra.ShellCompDirectiveNoFileComp
}
