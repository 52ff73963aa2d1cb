package validators

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// AnnotationPrefix begins the keys of all annotations of Fairlead.
const AnnotationPrefix = "fairlead.io/"

// userAnnotations are the annotations that people write.
func userAnnotations() []string {
	return append(rwx.VolumeAnnotations(), rwx.OptOutAnnotation, taint.NoTaintAnnotation)
}

// fairleadAnnotations are the annotations that Fairlead writes on the objects that CheckAnnotations sees.
func fairleadAnnotations() []string {
	return []string{
		rwx.StrategyAnnotation, rwx.NetworkAnnotation, rwx.AddressesAnnotation,
		rwx.MACAnnotation, rwx.SelectorAnnotation, rwx.NamespaceAnnotation,
	}
}

// CheckAnnotations warns of unknown annotations with Fairlead's prefix, and names the known annotation that was probably
// meant. Unknown annotations are not refused: a newer Fairlead may know the key.
//
// Objects: those of the rules for pods, templates, Services and volume networks.
func CheckAnnotations(keys iter.Seq[string]) []string {
	var unknown []string
	for key := range keys {
		if strings.HasPrefix(key, AnnotationPrefix) && !slices.Contains(userAnnotations(), key) && !slices.Contains(fairleadAnnotations(), key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for i, key := range unknown {
		remedy := "Fairlead reads " + strings.Join(userAnnotations(), ", ")
		if meant := nearest(key, userAnnotations()); meant != "" {
			remedy = fmt.Sprintf("did you mean %s?", meant)
		}
		unknown[i] = fmt.Sprintf("annotation %s is unknown to Fairlead and has no effect: %s", key, remedy)
	}
	return unknown
}

// nearest is the known word with the fewest edits, "" if a third of the word would have to change.
func nearest(word string, words []string) string {
	found, least := "", (len(word)-len(AnnotationPrefix))/3+2
	for _, w := range words {
		if n := edits(word, w); n < least {
			found, least = w, n
		}
	}
	return found
}

// edits is the Levenshtein distance: insertions, deletions and substitutions of bytes.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
