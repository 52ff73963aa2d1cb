package catalog

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const nodeSelectorForm = `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none`

// ParseNodeSelector reads the value of system-managed-components-node-selector:
// the labels that a node must have. A value may be empty. Space around keys and
// values counts for nothing.
//
// It is strict where Longhorn's parser is loose: of one key twice the last wins
// there, and what is no label is refused by the API server in every pod.
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
			return nil, refuse(nodeSelectorForm, "key %q is not the key of a label", key)
		}
		if len(validation.IsValidLabelValue(text)) > 0 {
			return nil, refuse(nodeSelectorForm, "value %q is not the value of a label", text)
		}
		if _, twice := selector[key]; twice {
			return nil, refuse(nodeSelectorForm, "key %q is there twice", key)
		}
		selector[key] = text
	}
	return selector, nil
}

func normalizeNodeSelector(value string) (string, error) {
	selector, err := ParseNodeSelector(value)
	return NodeSelectorTrait(selector), err
}

// NodeSelectorTrait writes a node selector as ParseNodeSelector reads it, by
// key: the normal form of the setting, and what pods are compared by.
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
		return true // what can't be read asks for nothing
	}
	for key, value := range selector {
		if had, ok := n.Labels[key]; !ok || had != value {
			return false
		}
	}
	return true
}
