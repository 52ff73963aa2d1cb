package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

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
