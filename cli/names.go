package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// ErrUnknownSetting is the error for a name that the catalog does not have.
var ErrUnknownSetting = errors.New("no setting that Fairlead knows")

// LookupSetting returns a setting; the error lists all names.
func LookupSetting(name string) (catalog.Definition, error) {
	d, known := catalog.Lookup(name)
	if !known {
		names := catalog.Names()
		if suggestion := DidYouMean(name, names); suggestion != "" {
			return d, fmt.Errorf("%q: %w%s", name, ErrUnknownSetting, suggestion)
		}
		return d, fmt.Errorf("%q: %w; it knows:\n  %s", name, ErrUnknownSetting, strings.Join(names, "\n  "))
	}
	return d, nil
}

// CompleteSettings completes the names of settings, as a cobra.Command's ValidArgsFunction.
func CompleteSettings(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return catalog.Names(), cobra.ShellCompDirectiveNoFileComp
}

// completionTimeout: a shell waits for the names.
const completionTimeout = 3 * time.Second

// CompleteNames completes the first argument with names of objects in the cluster; an object
// without a name is left out. What can't be read is not completed.
func CompleteNames[T client.Object](o *ClientOptions, list func() client.ObjectList, name func(T) string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		// Discovery does not end with the context.
		live, err := o.connect(completionTimeout)
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		found := list()
		if err := live.List(ctx, found); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		_ = meta.EachListItem(found, func(item runtime.Object) error {
			if o, ok := item.(T); ok {
				if n := name(o); n != "" {
					names = append(names, n)
				}
			}
			return nil
		})
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}

// DidYouMean suggests names that are like the one that is not known; empty if none is.
func DidYouMean(name string, known []string) string {
	// cobra compares names of commands by edit distance and by prefix.
	root := &cobra.Command{SuggestionsMinimumDistance: 3}
	for _, k := range known {
		root.AddCommand(&cobra.Command{Use: k, Run: func(*cobra.Command, []string) {}})
	}
	found := root.SuggestionsFor(name)
	if len(found) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(found[:min(len(found), 3)], ", ") + "?"
}
