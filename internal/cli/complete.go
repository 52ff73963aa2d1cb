package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

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
