package datapath

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// client is the CSI plugin pod of a node that mounts the volume.
func (x index) client(node string, network storage.Attachment, volume string) Hop {
	h := Hop{Kind: Client, Node: node, State: OK, Network: x.Rollout.Record.Clients}
	show := fmt.Sprintf("kubectl -n %s get pods -l %s --field-selector spec.nodeName=%s -o wide", x.Profile.Namespace, labels(x.Profile.ClientLabels), node)
	c, reason := storage.MountingClient(x.clients[node], x.Rollout.Record.Clients)
	if c == nil {
		return h.wrong(fmt.Sprintf("%s of the storage system on node %s: pods of the node can't mount volume %s", reason, node, volume), show)
	}
	h.Name, h.Network = c.Pod, c.Network
	if network.ForVolumes() {
		h.Network = network
	}
	if !network.IsZero() && !c.Reaches(network) {
		return h.wrong(fmt.Sprintf("Multus reports no address of pod %s on %s, so the pod can't reach the server", c.Pod, network), show)
	}
	return x.outOfLineHop(h, catalog.BlockedByClient, show)
}

// endpoint is the URL that the storage system gives its clients.
func (x index) endpoint(s storage.Service) Hop {
	url := x.Endpoints[s.Volume]
	h := Hop{Kind: Endpoint, Name: url, State: OK}
	want, known := storage.Endpoint(s, x.ClusterDomain)
	if url == "" || !known || url == want {
		return h
	}
	return h.wrong(fmt.Sprintf("the storage system gives clients %s, and Service %s has %s", url, s.Name, want),
		fmt.Sprintf("kubectl -n %s get service %s -o wide", s.Namespace, s.Name))
}

func (x index) service(s storage.Service) Hop {
	h := Hop{Kind: Service, Name: s.Name, Network: s.Network(x.Rollout.Record.Clients), State: OK}
	if !s.Headless() && s.ClusterIP != "" {
		h.Addresses = []string{s.ClusterIP}
	}
	return x.outOfLineHop(h, catalog.BlockedByService, fmt.Sprintf("kubectl -n %s get service %s -o yaml", s.Namespace, s.Name))
}

// addresses are those that Fairlead publishes for a headless Service.
func (x index) addresses(s storage.Service, attached bool) Hop {
	network := s.Network(x.Rollout.Record.Clients)
	h := Hop{Kind: Addresses, Name: s.Name, Network: network, State: OK}
	var want []netip.Addr
	for _, p := range storage.Publish(s, x.servers[s.Volume], x.Rollout.Record.Clients) {
		want = append(want, p.Address)
	}
	have := slices.SortedFunc(slices.Values(x.Published[s.Name]), netip.Addr.Compare)
	for _, a := range have {
		h.Addresses = append(h.Addresses, a.String())
	}
	switch {
	case s.OptOut || s.Selects:
		return h // Kubernetes or another controller publishes
	case !slices.Equal(have, want):
		return h.wrong(fmt.Sprintf("EndpointSlices of Service %s have %s, and Multus reports %s", s.Name, list(have), list(want)),
			"kubectl -n fairlead-system rollout restart deployment fairlead-controller")
	case attached && len(want) == 0:
		return h.wrong(fmt.Sprintf("no Ready server pod of volume %s has an address on %s: nothing is published", s.Volume, network),
			fmt.Sprintf("kubectl -n %s get pods -l %s=%s -o wide", x.Profile.Namespace, x.Profile.VolumeLabel, s.Volume))
	}
	return h
}

func (x index) serverHops(service storage.Service, attached bool) []Hop {
	var hops []Hop
	ready := false
	for _, s := range x.servers[service.Volume] {
		if service.Volume == "" || s.Terminating {
			continue
		}
		ready = ready || s.Ready
		h := Hop{Kind: Server, Name: s.Pod, Node: s.Node, Network: s.Network, State: OK}
		show := fmt.Sprintf("kubectl -n %s describe pod %s", x.Profile.Namespace, s.Pod)
		if addresses, err := storage.AddressesOn(s.Reported, s.Network); err == nil {
			for _, a := range addresses {
				h.Addresses = append(h.Addresses, a.String())
			}
		}
		if !s.Ready {
			hops = append(hops, h.wrong(fmt.Sprintf("server pod %s is not Ready", s.Pod), show))
			continue
		}
		hops = append(hops, x.outOfLineHop(h, catalog.BlockedByServer, show))
	}
	if attached && !ready && len(hops) == 0 && service.Volume != "" {
		hops = append(hops, Hop{Kind: Server, State: OK}.wrong(fmt.Sprintf("volume %s is attached and has no server pod", service.Volume),
			fmt.Sprintf("kubectl -n %s get pods -l %s=%s -o wide", x.Profile.Namespace, x.Profile.VolumeLabel, service.Volume)))
	}
	return hops
}

func (x index) outOfLineHop(h Hop, kind catalog.BlockerKind, command string) Hop {
	if message := x.outOfLine[[2]string{string(kind), h.Name}]; message != "" {
		h.State, h.Message, h.Command = Waiting, h.Name+" "+message, command
	}
	return h
}

func (h Hop) wrong(message, command string) Hop {
	h.State, h.Message, h.Command = Wrong, message, command
	return h
}

func labels(set map[string]string) string {
	var pairs []string
	for name, value := range set {
		pairs = append(pairs, name+"="+value)
	}
	slices.Sort(pairs)
	return strings.Join(pairs, ",")
}

func list(addresses []netip.Addr) string {
	if len(addresses) == 0 {
		return "none"
	}
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}
