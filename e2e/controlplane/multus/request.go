package multus

import (
	"encoding/json"
	"fmt"
	"strings"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
)

// parseRequest reads the networks annotation of a pod, in either of its forms:
// JSON, or "[namespace/]name[@interface]" separated by commas. Networks without
// a namespace are in the pod's.
func parseRequest(annotation, podNamespace string) ([]netv1.NetworkSelectionElement, error) {
	var elements []netv1.NetworkSelectionElement
	// Multus, too, tells the forms apart by characters that only JSON has.
	if strings.ContainsAny(annotation, `[{"`) {
		if err := json.Unmarshal([]byte(annotation), &elements); err != nil {
			return nil, fmt.Errorf("parsing the networks annotation as JSON: %w", err)
		}
	} else {
		for item := range strings.SplitSeq(annotation, ",") {
			element, err := parseShort(strings.TrimSpace(item))
			if err != nil {
				return nil, err
			}
			elements = append(elements, element)
		}
	}
	for i := range elements {
		if elements[i].Name == "" {
			return nil, fmt.Errorf("network %d of the networks annotation has no name", i+1)
		}
		if elements[i].Namespace == "" {
			elements[i].Namespace = podNamespace
		}
		if elements[i].InterfaceRequest == "" {
			// Multus counts all networks, not only those without a name.
			elements[i].InterfaceRequest = fmt.Sprintf("net%d", i+1)
		}
	}
	return elements, nil
}

func parseShort(item string) (netv1.NetworkSelectionElement, error) {
	rest, interfaceName, _ := strings.Cut(item, "@")
	namespace, name, qualified := strings.Cut(rest, "/")
	if !qualified {
		namespace, name = "", rest
	}
	if name == "" || strings.ContainsAny(name, "/@ ") || qualified && namespace == "" {
		return netv1.NetworkSelectionElement{}, fmt.Errorf("parsing the networks annotation: %q is not [namespace/]name[@interface]", item)
	}
	return netv1.NetworkSelectionElement{Namespace: namespace, Name: name, InterfaceRequest: interfaceName}, nil
}
