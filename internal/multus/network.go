package multus

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Network names a NetworkAttachmentDefinition. The zero Network is the
// cluster network.
type Network struct {
	Namespace string
	Name      string
}

// IsZero reports whether this is the cluster network.
func (n Network) IsZero() bool { return n == Network{} }

// String is <namespace>/<name>, or "" for the cluster network.
func (n Network) String() string {
	if n.IsZero() {
		return ""
	}
	return n.Namespace + "/" + n.Name
}

// ErrNotANetwork is the form of a network that did not parse. What follows it
// in a message says which half is wrong.
var ErrNotANetwork = errors.New("must be <namespace>/<NetworkAttachmentDefinition>")

// ParseNetwork reads <namespace>/<name>; "" is the cluster network. It is
// strict where Longhorn's parser is loose: `ns/`, `/nad`, `A B/C!` and `ns/x"y`
// are refused. Space around the value is ignored.
func ParseNetwork(value string) (Network, error) {
	value = strings.TrimSpace(value)
	if value == "" {
		return Network{}, nil
	}
	namespace, name, found := strings.Cut(value, "/")
	if !found {
		return Network{}, ErrNotANetwork
	}
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return Network{}, fmt.Errorf("%w: namespace %q is not a DNS label", ErrNotANetwork, namespace)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return Network{}, fmt.Errorf("%w: name %q is not a DNS name", ErrNotANetwork, name)
	}
	return Network{Namespace: namespace, Name: name}, nil
}

// Attachment is a network and the name of its interface in the pod. The zero
// Attachment is the cluster network.
type Attachment struct {
	Network
	Interface string
}

// String is <namespace>/<name>@<interface>, which is also Multus' short form;
// "" is the cluster network.
func (a Attachment) String() string {
	if a.IsZero() {
		return ""
	}
	return a.Network.String() + "@" + a.Interface
}

// errNotAnAttachment is returned for text that Attachment.String does not write.
var errNotAnAttachment = errors.New("must be <namespace>/<name>@<interface>")

// ParseAttachment reads what Attachment.String writes.
func ParseAttachment(value string) (Attachment, error) {
	if value == "" {
		return Attachment{}, nil
	}
	text, iface, found := strings.Cut(value, "@")
	if !found || !validInterface(iface) {
		return Attachment{}, errNotAnAttachment
	}
	network, err := ParseNetwork(text)
	if err != nil || network.IsZero() {
		return Attachment{}, errNotAnAttachment
	}
	return Attachment{Network: network, Interface: iface}, nil
}

// maxInterfaceName is IFNAMSIZ-1 of Linux.
const maxInterfaceName = 15

func validInterface(name string) bool {
	if name == "" || name == "." || name == ".." || len(name) > maxInterfaceName {
		return false
	}
	// Linux allows more; but what is not here would have to be escaped somewhere.
	for _, c := range []byte(name) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return false
		}
	}
	return true
}

// volumeInterface begins the interface names of networks that single volumes are on.
const volumeInterface = "fl"

// VolumeAttachment is how pods join a network that single volumes are on. The
// interface name follows from the network, so that client and server pods agree
// on it and two networks never share one.
func VolumeAttachment(n Network) Attachment {
	if n.IsZero() {
		return Attachment{}
	}
	sum := sha256.Sum256([]byte(n.String()))
	return Attachment{Network: n, Interface: volumeInterface + hex.EncodeToString(sum[:5])}
}

// ForVolumes reports whether VolumeAttachment made the attachment. Other interfaces
// with a name of the same form belong to their owners, and are left alone.
func (a Attachment) ForVolumes() bool {
	return strings.HasPrefix(a.Interface, volumeInterface) && a == VolumeAttachment(a.Network)
}

// VolumeAttachments returns the attachments for single volumes that the networks
// annotation of a pod asks for, in order.
func VolumeAttachments(annotation, podNamespace string) ([]Attachment, error) {
	selections, err := ParseSelections(annotation, podNamespace)
	if err != nil {
		return nil, err
	}
	var attachments []Attachment
	for _, s := range selections {
		if s.ForVolumes() {
			attachments = append(attachments, s)
		}
	}
	return InOrder(attachments), nil
}

// InOrder returns the attachments sorted, each once; nil when there is none.
func InOrder(attachments []Attachment) []Attachment {
	if len(attachments) == 0 {
		return nil
	}
	sorted := slices.Clone(attachments)
	slices.SortFunc(sorted, func(a, b Attachment) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name), strings.Compare(a.Interface, b.Interface))
	})
	return slices.Compact(sorted)
}

// IsCNI reports whether CNI can read the config of a NetworkAttachmentDefinition: a JSON object of one plugin, or of a list.
// Without a config, Multus takes a file of the node.
func IsCNI(config string) bool {
	var c struct {
		Type    string `json:"type"`
		Plugins []struct {
			Type string `json:"type"`
		} `json:"plugins"`
	}
	return config == "" || json.Unmarshal([]byte(config), &c) == nil && (c.Type != "" || len(c.Plugins) > 0 && c.Plugins[0].Type != "")
}
