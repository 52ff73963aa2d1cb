package ondat

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/fairlead-io/fairlead/internal/nfs"
)

// State of a volume.
type State string

const (
	// Plain volumes are not shared, or do not exist any more.
	Plain State = "Plain"
	// NotServed volumes have no NFS server now: they are detached, or failing over.
	NotServed State = "NotServed"
	// Served volumes have an NFS server, and all labels.
	Served State = "Served"
	// Ignored volumes have an NFS server, and something about them is wrong.
	Ignored State = "Ignored"
)

// Finding is a volume, judged.
type Finding struct {
	Volume
	State State
	// Why a volume is Ignored.
	Why Refusal
	// Server is the address of a Served volume's NFS server.
	Server netip.AddrPort
	// PV, PVC and Namespace of the volume in Kubernetes; empty where a label is missing.
	PV, PVC, Namespace string
}

// Refusal is why a volume is not published. There are few reasons: they are reasons of
// events, and values of a metric's label (the released manager used the text of errors).
type Refusal struct{ Reason, Message string }

// Error is the message.
func (r Refusal) Error() string { return r.Message }

// Refuse returns a Refusal.
func Refuse(reason, format string, args ...any) error {
	return Refusal{reason, fmt.Sprintf(format, args...)}
}

// Judge says of each volume of the control plane whether it is to be published.
// The proposal asks for an endpoint <ip>:<port> and for three labels; the PVC is
// compared later (Frontend).
//
// Two volumes never share a server: where two name the same address, one of them is
// out of date, and its clients would get another volume's data. The one that is
// attached as shared keeps it. If that decides nothing, neither is published.
func Judge(volumes []Volume) []Finding {
	list := make([]Finding, len(volumes))
	servers := map[netip.AddrPort][]int{}
	for i, v := range volumes {
		list[i] = judge(v)
		if list[i].State == Served {
			servers[list[i].Server] = append(servers[list[i].Server], i)
		}
	}
	for server, users := range servers {
		if len(users) == 1 {
			continue
		}
		attached := slices.DeleteFunc(slices.Clone(users), func(i int) bool { return volumes[i].AttachmentType != AttachedNFS })
		for _, i := range users {
			if len(attached) == 1 && attached[0] == i {
				continue
			}
			other := users[0]
			if other == i {
				other = users[1]
			}
			list[i].ignore("EndpointOfTwoVolumes", "%s and %s both report NFS server %s: detach the one that is not in use",
				volumes[i].Title(), strings.TrimPrefix(volumes[other].Title(), "Ondat "), server)
		}
	}
	return list
}

func judge(v Volume) Finding {
	f := Finding{Volume: v, PV: v.Labels[LabelPV], PVC: v.Labels[LabelPVC], Namespace: v.Labels[LabelNamespace]}
	var missing, wrong []string
	for _, l := range []struct {
		name, value string
		check       func(string) []string
	}{
		{LabelPV, f.PV, validation.IsDNS1123Subdomain}, {LabelPVC, f.PVC, validation.IsDNS1123Subdomain}, {LabelNamespace, f.Namespace, validation.IsDNS1123Label},
	} {
		switch {
		case l.value == "":
			missing = append(missing, l.name)
		case len(l.check(l.value)) > 0:
			wrong = append(wrong, fmt.Sprintf("%s: %q", l.name, Printable(l.value)))
		}
	}
	if len(wrong) > 0 { // never look for an object of such a name
		f.PV, f.PVC, f.Namespace = "", "", ""
	}
	if len(validation.IsValidLabelValue(ServiceLabelValue(v.ID))) > 0 {
		wrong = append(wrong, fmt.Sprintf("ID: %q", Printable(v.ID)))
	}
	labelled := len(missing) == 0 && len(wrong) == 0
	switch server, err := nfs.ParseEndpoint(Printable(v.ServiceEndpoint), 0); {
	case v.ServiceEndpoint == "" && labelled:
		f.State = NotServed
	case v.ServiceEndpoint == "":
		f.State = Plain
	case len(missing) > 0:
		f.ignore("MissingLabels", "%s is shared and lacks the label %s: run the external provisioner with --extra-create-metadata, and create the volume again",
			v.Title(), strings.Join(missing, ", "))
	case len(wrong) > 0:
		f.ignore("InvalidLabels", "%s has values that no Kubernetes object can have: %s: create the volume again", v.Title(), strings.Join(wrong, ", "))
	case err != nil:
		f.ignore("InvalidEndpoint", "%s reports NFS server %q, which cannot be published: %s", v.Title(), Printable(v.ServiceEndpoint), err)
	default:
		f.State, f.Server = Served, server
	}
	return f
}

func (f *Finding) ignore(reason, format string, args ...any) {
	f.State, f.Why, f.Server = Ignored, Refusal{reason, fmt.Sprintf(format, args...)}, netip.AddrPort{}
}
