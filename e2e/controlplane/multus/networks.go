package multus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
)

// shortForm of a network in the annotation.
var shortForm = regexp.MustCompile(`^(?:([^/@ ]+)/)?([^/@ ]+)(?:@([^/@ ]+))?$`)

// parseRequest reads the networks annotation of a pod, in either of its forms:
// JSON, or "[namespace/]name[@interface]" separated by commas. Networks without
// a namespace are in the pod's.
func parseRequest(annotation, podNamespace string) (elements []netv1.NetworkSelectionElement, _ error) {
	// Multus, too, tells the forms apart by characters that only JSON has.
	if strings.ContainsAny(annotation, `[{"`) {
		if err := json.Unmarshal([]byte(annotation), &elements); err != nil {
			return nil, fmt.Errorf("parsing the networks annotation as JSON: %w", err)
		}
	} else {
		for item := range strings.SplitSeq(annotation, ",") {
			parts := shortForm.FindStringSubmatch(strings.TrimSpace(item))
			if parts == nil {
				return nil, fmt.Errorf("parsing the networks annotation: %q is not [namespace/]name[@interface]", item)
			}
			elements = append(elements, netv1.NetworkSelectionElement{Namespace: parts[1], Name: parts[2], InterfaceRequest: parts[3]})
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

// subnet of host-local, or range of whereabouts.
type subnet struct {
	Subnet   netip.Prefix `json:"subnet"`
	RangeEnd string       `json:"rangeEnd"`
	// excluded addresses are never assigned.
	excluded []netip.Prefix
	// beside assigns an address to pods that ask for a fixed one, too, as whereabouts does.
	beside bool
}

// first address that is given without a request: the one after the gateway's.
func (s subnet) first() netip.Addr { return s.Subnet.Addr().Next().Next() }

func (s subnet) excludes(a netip.Addr) bool {
	return slices.ContainsFunc(s.excluded, func(p netip.Prefix) bool { return p.Contains(a) })
}

// parseConfig reads the spec.config of a NetworkAttachmentDefinition. An interface gets one address of each subnet.
func parseConfig(config string) (subnets []subnet, _ error) {
	var conf struct {
		Plugins []any `json:"plugins"`
		IPAM    struct {
			Type string `json:"type"`
			subnet
			// Ranges are sets: each set gives one address, here from its first range.
			Ranges [][]subnet `json:"ranges"`
			// Range and Exclude are whereabouts'.
			Range   netip.Prefix   `json:"range"`
			Exclude []netip.Prefix `json:"exclude"`
		} `json:"ipam"`
	}
	if err := json.Unmarshal([]byte(config), &conf); err != nil {
		return nil, fmt.Errorf("parsing spec.config: %w", err)
	}
	switch kind := conf.IPAM.Type; kind {
	case "whereabouts":
		conf.IPAM.subnet = subnet{Subnet: conf.IPAM.Range, excluded: conf.IPAM.Exclude, beside: true}
	case "host-local", "":
	default:
		return nil, fmt.Errorf("IPAM type %q is not simulated", kind)
	}
	if len(conf.Plugins) > 0 {
		return nil, errors.New("lists of plugins are not simulated")
	}
	for _, set := range append([][]subnet{{conf.IPAM.subnet}}, conf.IPAM.Ranges...) {
		if len(set) == 0 || !set[0].Subnet.IsValid() {
			continue
		}
		if set[0].RangeEnd != "" {
			return nil, errors.New("rangeEnd is not simulated")
		}
		set[0].Subnet = set[0].Subnet.Masked()
		subnets = append(subnets, set[0])
	}
	return subnets, nil
}

// parseAddress reads an address with or without a prefix length.
func parseAddress(text string) (netip.Addr, error) {
	address, _, _ := strings.Cut(text, "/")
	return netip.ParseAddr(address)
}
