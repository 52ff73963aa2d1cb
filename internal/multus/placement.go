package multus

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// ErrOtherIdentity is returned if the annotation requests other addresses or another
// MAC than those to add.
var ErrOtherIdentity = errors.New("asks for other addresses there")

// Placement is the network of one volume and what its server has there. The
// zero Placement is the cluster network.
type Placement struct {
	Network  Attachment
	Identity Identity
}

// AddPlacement is AddNetwork with the addresses and the MAC of the volume's server. They need the JSON
// form, so the short form is rewritten. A selection with others is left alone: ErrOtherIdentity.
func AddPlacement(annotation, podNamespace string, p Placement) (string, error) {
	added, err := AddNetwork(annotation, podNamespace, p.Network)
	if err != nil || p.Network.IsZero() || p.Identity.IsZero() {
		return added, err
	}
	selections, err := ParseSelections(added, podNamespace)
	if err != nil {
		return annotation, err
	}
	if !isJSONForm(added) {
		added = inJSONForm(selections)
	}
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(added), &elements); err != nil {
		return annotation, fmt.Errorf("%w: %w", errNotASelection, err)
	}
	i := slices.Index(selections, p.Network)
	identified, err := withIdentity(elements[i], p.Identity)
	if err != nil {
		return annotation, err
	}
	if identified == string(elements[i]) {
		return added, nil
	}
	items := make([]string, len(elements))
	for j, e := range elements {
		items[j] = string(e)
	}
	items[i] = identified
	return "[" + strings.Join(items, ", ") + "]", nil
}

// withIdentity adds the missing fields of one selection; other fields stay to the letter.
func withIdentity(element json.RawMessage, want Identity) (string, error) {
	var have struct {
		IPs []string `json:"ips"`
		MAC string   `json:"mac"`
	}
	if err := json.Unmarshal(element, &have); err != nil {
		return "", fmt.Errorf("%w: %w", errNotASelection, err)
	}
	var fields []string
	if want.Addresses != "" {
		addresses, err := ParseAddresses(strings.Join(have.IPs, ","))
		switch {
		case len(have.IPs) > 0 && (err != nil || addresses != want.Addresses):
			return "", fmt.Errorf("%w: %s", ErrOtherIdentity, strings.Join(have.IPs, ","))
		case len(have.IPs) == 0:
			quoted := make([]string, 0, 2)
			for _, ip := range want.IPs() {
				quoted = append(quoted, fmt.Sprintf("%q", ip))
			}
			fields = append(fields, `"ips": [`+strings.Join(quoted, ", ")+"]")
		}
	}
	if want.MAC != "" {
		mac, err := ParseMAC(have.MAC)
		switch {
		case have.MAC != "" && (err != nil || mac != want.MAC):
			return "", fmt.Errorf("%w: %s", ErrOtherIdentity, have.MAC)
		case have.MAC == "":
			fields = append(fields, fmt.Sprintf(`"mac": %q`, want.MAC))
		}
	}
	if len(fields) == 0 {
		return string(element), nil
	}
	text, err := withoutEmpty(element)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(strings.TrimSuffix(text, "}"), " \t\r\n") + ", " + strings.Join(fields, ", ") + "}", nil
}

// withoutEmpty drops empty fields ips and mac, in upper or lower case as Multus reads them, so that
// no field appears twice.
func withoutEmpty(element json.RawMessage) (string, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(element, &fields); err != nil {
		return "", fmt.Errorf("%w: %w", errNotASelection, err)
	}
	found := false
	for name, value := range fields {
		empty := slices.Contains([]string{"null", "[]", `""`}, strings.Join(strings.Fields(string(value)), ""))
		if empty && (strings.EqualFold(name, "ips") || strings.EqualFold(name, "mac")) {
			delete(fields, name)
			found = true
		}
	}
	if !found {
		return string(element), nil
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotASelection, err)
	}
	return string(text), nil
}

// FixedAddresses returns the addresses that a pod's annotation asks for, on any network.
func FixedAddresses(annotation string) []netip.Addr {
	var elements []struct {
		IPs []string `json:"ips"`
	}
	if !isJSONForm(annotation) || json.Unmarshal([]byte(annotation), &elements) != nil {
		return nil
	}
	var fixed []netip.Addr
	for _, e := range elements {
		for _, item := range e.IPs {
			if address, _, err := parseAddress(item); err == nil {
				fixed = append(fixed, address)
			}
		}
	}
	return fixed
}
