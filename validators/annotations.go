package validators

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/fence/taint"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// AnnotationPrefix begins the keys of all annotations that are Fairlead's.
const AnnotationPrefix = "fairlead.io/"

// forUsers are the annotations that people write.
func forUsers() []string {
	return append(storage.VolumeAnnotations(), storage.OptOutAnnotation, taint.NoTaintAnnotation)
}

// byFairlead are the annotations that Fairlead writes on the objects that CheckAnnotations sees.
func byFairlead() []string {
	return []string{
		storage.StrategyAnnotation, storage.NetworkAnnotation, storage.AddressesAnnotation,
		storage.MACAnnotation, storage.SelectorAnnotation, storage.NamespaceAnnotation,
	}
}

// CheckAnnotations warns of annotations with Fairlead's prefix that Fairlead does
// not know, and names the one that was probably meant. Nothing is refused: a newer
// Fairlead may know the key.
//
// Objects: all that pods, templates, Services and volume-network rules are sent anyway.
func CheckAnnotations(keys iter.Seq[string]) []string {
	var unknown []string
	for key := range keys {
		if strings.HasPrefix(key, AnnotationPrefix) && !slices.Contains(forUsers(), key) && !slices.Contains(byFairlead(), key) {
			unknown = append(unknown, key)
		}
	}
	slices.Sort(unknown)
	for i, key := range unknown {
		remedy := "Fairlead reads " + strings.Join(forUsers(), ", ")
		if meant := nearest(key, forUsers()); meant != "" {
			remedy = fmt.Sprintf("did you mean %s?", meant)
		}
		unknown[i] = fmt.Sprintf("annotation %s is unknown to Fairlead and has no effect: %s", key, remedy)
	}
	return unknown
}

// nearest is the word that takes the fewest edits, "" if a third of it would have to change.
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
