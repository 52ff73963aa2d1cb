package multus

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Annotations of the Network Plumbing Working Group's de-facto standard, which
// Multus implements.
const (
	NetworksAnnotation      = "k8s.v1.cni.cncf.io/networks"
	NetworkStatusAnnotation = "k8s.v1.cni.cncf.io/network-status"
	// oldNetworkStatusAnnotation is what Multus wrote before 3.5.
	oldNetworkStatusAnnotation = "k8s.v1.cni.cncf.io/networks-status"
)

// errNotASelection is returned for a networks annotation that Multus would refuse.
var errNotASelection = errors.New("not a network selection that Multus understands")

// ClashError says that a pod already gives the interface name to another network.
type ClashError struct {
	Interface string
	Held      Network
}

func (e *ClashError) Error() string {
	return fmt.Sprintf("interface %s is already asked for by network %s", e.Interface, e.Held)
}

// ParseSelections reads a networks annotation, in the JSON or the short form.
// A network without a namespace is in the pod's. An empty annotation selects none.
func ParseSelections(annotation, podNamespace string) ([]Attachment, error) {
	if strings.TrimSpace(annotation) == "" {
		return nil, nil
	}
	if isJSONForm(annotation) {
		return parseJSONForm(annotation, podNamespace)
	}
	return parseShortForm(annotation, podNamespace)
}

// isJSONForm tells the two forms apart the way Multus does.
func isJSONForm(annotation string) bool { return strings.ContainsAny(annotation, "[{\"") }

func parseJSONForm(annotation, podNamespace string) ([]Attachment, error) {
	// Multus itself reads this annotation with encoding/json, so the same
	// reader is used to agree with it on what is valid.
	var elements []*struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		Interface string `json:"interface"`
	}
	if err := json.Unmarshal([]byte(annotation), &elements); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotASelection, err)
	}
	selections := make([]Attachment, 0, len(elements))
	for i, e := range elements {
		if e == nil || e.Name == "" {
			return nil, fmt.Errorf("%w: element %d has no name", errNotASelection, i)
		}
		namespace := e.Namespace
		if namespace == "" {
			namespace = podNamespace
		}
		selections = append(selections, Attachment{Network{namespace, e.Name}, e.Interface})
	}
	return selections, nil
}

func parseShortForm(annotation, podNamespace string) ([]Attachment, error) {
	var selections []Attachment
	for item := range strings.SplitSeq(annotation, ",") {
		item = strings.TrimSpace(item)
		name, iface, named := strings.Cut(item, "@")
		if named && !validInterface(iface) {
			return nil, fmt.Errorf("%w: %q has no usable interface name", errNotASelection, item)
		}
		namespace := podNamespace
		if before, after, found := strings.Cut(name, "/"); found {
			namespace, name = before, after
			if len(validation.IsDNS1123Label(namespace)) > 0 {
				return nil, fmt.Errorf("%w: %q", errNotASelection, item)
			}
		}
		// Multus takes labels only here: a name with dots, or a long one, needs the JSON form.
		if len(validation.IsDNS1123Label(name)) > 0 {
			return nil, fmt.Errorf("%w: %q", errNotASelection, item)
		}
		selections = append(selections, Attachment{Network{namespace, name}, iface})
	}
	return selections, nil
}

// AddNetwork returns the annotation with the attachment asked for as well. What
// is there stays, in its form and to the letter, unless the short form can't
// name the network. An annotation that asks for it already comes back unchanged.
//
// It returns errNotASelection when the annotation can't be read, and a
// *ClashError when another network holds the interface name: then nothing can
// be added without taking something away.
func AddNetwork(annotation, podNamespace string, a Attachment) (string, error) {
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil || a.IsZero() {
		return annotation, err
	}
	if slices.Contains(selections, a) {
		return annotation, nil
	}
	for _, s := range selections {
		if s.Interface == a.Interface {
			return annotation, &ClashError{Interface: a.Interface, Held: s.Network}
		}
	}
	switch {
	case len(selections) == 0:
		return "[" + selectionJSON(a) + "]", nil
	case isJSONForm(annotation):
		body := strings.TrimRight(annotation, " \t\r\n")
		return strings.TrimSuffix(body, "]") + ", " + selectionJSON(a) + "]", nil
	case len(validation.IsDNS1123Label(a.Name)) > 0:
		return inJSONForm(append(selections, a)), nil
	default:
		return annotation + "," + a.String(), nil
	}
}

// inJSONForm writes selections of the short form, which have no other fields.
func inJSONForm(selections []Attachment) string {
	items := make([]string, 0, len(selections))
	for _, s := range selections {
		if s.Interface == "" {
			items = append(items, fmt.Sprintf(`{"namespace": %q, "name": %q}`, s.Namespace, s.Name))
		} else {
			items = append(items, selectionJSON(s))
		}
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// selectionJSON is Longhorn's text to the letter, since Longhorn compares the
// annotations that it manages as strings and rewrites what differs.
func selectionJSON(a Attachment) string {
	return fmt.Sprintf(`{"namespace": %q, "name": %q, "interface": %q}`, a.Namespace, a.Name, a.Interface)
}

// ManagedAttachments returns the attachments asked for on the interface names
// that belong to Longhorn, in the order of the annotation.
func ManagedAttachments(annotation, podNamespace string, interfaces []string) ([]Attachment, error) {
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil {
		return nil, err
	}
	var managed []Attachment
	for _, s := range selections {
		if slices.Contains(interfaces, s.Interface) {
			managed = append(managed, s)
		}
	}
	return managed, nil
}

// ManagedAttachment returns the first of ManagedAttachments, or the zero Attachment.
func ManagedAttachment(annotation, podNamespace string, interfaces []string) (Attachment, error) {
	managed, err := ManagedAttachments(annotation, podNamespace, interfaces)
	if err != nil || len(managed) == 0 {
		return Attachment{}, err
	}
	return managed[0], nil
}

// SetManaged returns the annotation with exactly these attachments on the
// interface names that belong to Longhorn and on those of per-volume
// networks. Other selections stay, though their spacing may not. An attachment
// that is added comes before those that follow it here: a template that is
// changed back is then as it was, and no pod restarts.
func SetManaged(annotation, podNamespace string, interfaces []string, attachments ...Attachment) (string, error) {
	kept, err := KeepManaged(annotation, podNamespace, interfaces, attachments...)
	if err != nil {
		return annotation, err
	}
	for i, a := range attachments {
		if kept, err = addBefore(kept, podNamespace, a, attachments[i+1:]); err != nil {
			return annotation, err
		}
	}
	return kept, nil
}

// addBefore is AddNetwork, but puts the attachment before the first of those that follow it.
func addBefore(annotation, podNamespace string, a Attachment, following []Attachment) (string, error) {
	added, err := AddNetwork(annotation, podNamespace, a)
	if err != nil || added == annotation || isJSONForm(added) != isJSONForm(annotation) {
		return added, err
	}
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil {
		return annotation, err
	}
	at := slices.IndexFunc(selections, func(s Attachment) bool { return slices.Contains(following, s) })
	if at < 0 {
		return added, nil
	}
	items, err := rawSelections(added)
	if err != nil {
		return annotation, err
	}
	last := len(items) - 1
	return joinSelections(added, slices.Insert(items[:last:last], at, items[last])), nil
}

// KeepManaged returns the annotation without the attachments on the interface
// names that belong to Longhorn, and on those of per-volume networks, except
// the given ones. It adds none.
func KeepManaged(annotation, podNamespace string, interfaces []string, keep ...Attachment) (string, error) {
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil {
		return annotation, err
	}
	stays := func(s Attachment) bool {
		return slices.Contains(keep, s) || !slices.Contains(interfaces, s.Interface) && !s.ForVolumes()
	}
	if !slices.ContainsFunc(selections, func(s Attachment) bool { return !stays(s) }) {
		return annotation, nil
	}
	return filterSelections(annotation, selections, stays)
}

func filterSelections(annotation string, selections []Attachment, keep func(Attachment) bool) (string, error) {
	items, err := rawSelections(annotation)
	if err != nil {
		return "", err
	}
	var kept []string
	for i, item := range items {
		if keep(selections[i]) {
			kept = append(kept, item)
		}
	}
	return joinSelections(annotation, kept), nil
}

// rawSelections are the texts of the selections, so that fields that this package does not know survive.
func rawSelections(annotation string) ([]string, error) {
	if !isJSONForm(annotation) {
		return strings.Split(annotation, ","), nil
	}
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(annotation), &elements); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotASelection, err)
	}
	items := make([]string, 0, len(elements))
	for _, e := range elements {
		items = append(items, string(e))
	}
	return items, nil
}

// joinSelections writes selections in the form of the annotation.
func joinSelections(annotation string, items []string) string {
	switch {
	case !isJSONForm(annotation):
		return strings.Join(items, ",")
	case len(items) == 0:
		return ""
	}
	return "[" + strings.Join(items, ", ") + "]"
}
