package catalog

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const nodeSelectorForm = `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none`

// ParseNodeSelector parses system-managed-components-node-selector: the labels that a node must have.
// A label may have an empty value. Space around keys and values is ignored.
//
// Longhorn accepts more: of duplicate keys the last wins, and the API server refuses every pod with invalid labels.
func ParseNodeSelector(value string) (map[string]string, error) {
	if value = strings.TrimSpace(value); value == "" {
		return nil, nil
	}
	selector := map[string]string{}
	items := strings.Split(value, ";")
	for i, item := range items {
		item = strings.TrimSpace(item)
		if item == "" {
			return nil, refuse(nodeSelectorForm, "%s", emptyItem(i, len(items)))
		}
		if strings.Count(item, ":") != 1 {
			return nil, refuse(nodeSelectorForm, `%q must have one ":"`, item)
		}
		key, text, _ := strings.Cut(item, ":")
		key, text = strings.TrimSpace(key), strings.TrimSpace(text)
		if len(validation.IsQualifiedName(key)) > 0 {
			return nil, refuse(nodeSelectorForm, "key %q is not a valid label key", key)
		}
		if len(validation.IsValidLabelValue(text)) > 0 {
			return nil, refuse(nodeSelectorForm, "value %q is not a valid label value", text)
		}
		if _, twice := selector[key]; twice {
			return nil, refuse(nodeSelectorForm, "key %q occurs twice", key)
		}
		selector[key] = text
	}
	return selector, nil
}

func normalizeNodeSelector(value string) (string, error) {
	selector, err := ParseNodeSelector(value)
	return NodeSelectorTrait(selector), err
}

// NodeSelectorTrait writes a node selector sorted by key: the normal form of the setting, and the trait of pods.
func NodeSelectorTrait(selector map[string]string) string {
	var items []string
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		items = append(items, key+":"+selector[key])
	}
	return strings.Join(items, ";")
}

// Has reports whether the node has all labels of a NodeSelectorTrait.
func (n Node) Has(trait string) bool {
	selector, err := ParseNodeSelector(trait)
	if err != nil {
		return true // a malformed trait requires no labels
	}
	for key, value := range selector {
		if label, ok := n.Labels[key]; !ok || label != value {
			return false
		}
	}
	return true
}
