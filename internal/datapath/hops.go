package datapath

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func hop(kind Kind, name string, network multus.Attachment) Hop {
	return Hop{Kind: kind, Name: name, Network: network.String(), Addresses: []string{}, State: OK}
}

// deadMounts are the workloads of the volume whose mount is dead.
func (x index) deadMounts(v rwx.Volume) (hops []Hop) {
	for _, d := range x.Dead {
		if !slices.Contains(d.Volumes, v.Name) || !slices.Contains(v.Nodes, d.Node) {
			continue
		}
		h := hop(Workload, d.Pod, multus.Attachment{})
		h.Node = d.Node
		namespace, pod, _ := strings.Cut(d.Pod, "/")
		command := fmt.Sprintf("kubectl -n %s delete pod %s", namespace, pod)
		switch d.Reason {
		case rwx.ReasonNoController: // deleted, it is lost
			command = fmt.Sprintf("kubectl -n %s get pod %s -o yaml", namespace, pod)
		case rwx.ReasonBudget: // which a deletion bypasses
			command = fmt.Sprintf("kubectl -n %s get poddisruptionbudgets", namespace)
		}
		hops = append(hops, h.wrong(fmt.Sprintf("pod %s: %s", d.Pod, d.Message), command))
	}
	return hops
}

// client is the CSI plugin pod of a node that mounts the volume. A pod on the wanted network may still restart for the
// networks of other volumes.
func (x index) client(node string, network, wanted multus.Attachment, volume string) Hop {
	h := hop(Client, "", x.Rollout.Record.Clients)
	h.Node = node
	show := x.showClients(node)
	mounts := x.Rollout.Record.Clients
	if network.ForVolumes() { // what counts is the volume's own network, below
		mounts = multus.Attachment{}
	}
	c, reason := rwx.MountingClient(x.clients[node], mounts)
	if c == nil {
		if waits := x.notRolledOut(node); waits != "" && network.IsZero() {
			h.Name, h.Network = x.clients[node][0].Pod, reportedNetwork(x.clients[node][0])
			return h.waiting(waits, show)
		}
		return h.wrong(fmt.Sprintf("%s of the storage system on node %s: pods of the node can't mount volume %s", reason, node, volume), show)
	}
	h.Name, h.Network = c.Pod, reportedNetwork(*c)
	if network.ForVolumes() {
		h.Network = network.String()
	}
	if !network.IsZero() && !c.Reaches(network) {
		return h.wrong(fmt.Sprintf("Multus reports no address of pod %s on %s, so the pod can't reach the server", c.Pod, network), show)
	}
	if c.Clash.Pod != "" && !network.IsZero() {
		return h.wrong(clash("CSI plugin pod", c.Pod, network, c.Clash), show)
	}
	if network == wanted && !network.IsZero() {
		return h
	}
	return x.outOfLineHop(h, catalog.BlockedByClient, show)
}

// reportedNetwork is the network on which the client has an address, whatever it asks for.
func reportedNetwork(c rwx.Client) string {
	if c.Reported {
		return c.Network.String()
	}
	for _, a := range c.NetworksReported {
		return a.String()
	}
	return ""
}

func clash(kind, pod string, network multus.Attachment, with rwx.Clash) string {
	return fmt.Sprintf("%s %s has an address on %s that pod %s has too: the network's ipam assigns addresses twice, as host-local does with one range on every node", kind, pod, network, with.Pod)
}

func (x index) showClients(node string) string {
	return fmt.Sprintf("kubectl -n %s get pods -l %s --field-selector spec.nodeName=%s -o wide", x.Names.Namespace, labels(x.Names.ClientLabels), node)
}

// notRolledOut says what the roll-out on a node waits for, while its only client is Ready: volumes on the cluster network are
// used there meanwhile. "" if that is not so.
func (x index) notRolledOut(node string) string {
	if len(x.clients[node]) != 1 {
		return ""
	}
	c := x.clients[node][0]
	if message := x.outOfLine[[2]string{string(catalog.BlockedByClient), c.Pod}]; message != "" && c.Ready && !c.Terminating {
		return "pod " + c.Pod + " " + message
	}
	return ""
}

// endpoint is the URL that the storage system gives its clients.
func (x index) endpoint(s rwx.Service) Hop {
	url := x.Endpoints[s.Volume]
	h := hop(Endpoint, url, multus.Attachment{})
	want, known := rwx.Endpoint(s, x.ClusterDomain)
	if url == "" || !known || url == want {
		return h
	}
	return h.wrong(fmt.Sprintf("the storage system gives clients %s, and Service %s has %s", url, s.Name, want),
		fmt.Sprintf("kubectl -n %s get service %s -o wide", s.Namespace, s.Name))
}

func (x index) service(s rwx.Service, v rwx.Volume, wanted multus.Attachment) Hop {
	network := s.Network(x.Rollout.Record.Clients)
	h := hop(Service, s.Name, network)
	if !s.Headless() && s.ClusterIP != "" {
		h.Addresses = []string{s.ClusterIP}
	}
	if network == wanted && network != x.Rollout.Due(s.Volume).Network { // the settings were taken back before the Service was recreated
		return h
	}
	show := fmt.Sprintf("kubectl -n %s get service %s -o yaml", s.Namespace, s.Name)
	if s.Fixed || s.OptOut { // left alone, also when the volume is detached
		return x.outOfLineHop(h, catalog.BlockedByService, show)
	}
	return x.outOfLineHop(h, catalog.BlockedByService, detachOr(v, show))
}

// addresses are those that Fairlead publishes for a headless Service.
func (x index) addresses(s rwx.Service, v rwx.Volume) Hop {
	network := s.Network(x.Rollout.Record.Clients)
	h := hop(Addresses, s.Name, network)
	var want []netip.Addr
	for _, p := range rwx.Publish(s, x.servers[s.Volume], x.Rollout.Record.Clients) {
		want = append(want, p.Address)
	}
	have := slices.SortedFunc(slices.Values(x.Published[s.Name]), netip.Addr.Compare)
	for _, a := range have {
		h.Addresses = append(h.Addresses, a.String())
	}
	switch {
	case s.OptOut || s.Selects:
		return h // Kubernetes or another controller publishes
	case !slices.Equal(have, want) && x.Idle:
		return h.wrong(fmt.Sprintf("EndpointSlices of Service %s have %s, and Multus reports %s: no controller of Fairlead publishes", s.Name, list(have), list(want)), "fairlead check")
	case !slices.Equal(have, want):
		return h.wrong(fmt.Sprintf("EndpointSlices of Service %s have %s, and Multus reports %s", s.Name, list(have), list(want)),
			"kubectl -n fairlead-system rollout restart deployment fairlead-controller")
	case v.Attached && len(v.Purposes) == 0 && len(want) == 0:
		if starting := x.starting(v); starting != "" {
			return h.waiting(starting+"; nothing is published yet", x.showServers(v.Name))
		}
		return h.wrong(fmt.Sprintf("no Ready server pod of volume %s has an address on %s: nothing is published", s.Volume, network), x.showServers(v.Name))
	}
	return h
}

// noService is the hop of a volume that a pod uses, before the storage system has created its Service.
func (x index) noService(v rwx.Volume) Hop {
	h, command := hop(Service, "", multus.Attachment{}), fmt.Sprintf("kubectl -n %s get services", x.Names.Namespace)
	if x.mayStart(v.Name, v.Since) {
		return h.waiting(fmt.Sprintf("the server of volume %s is starting: no Service yet", v.Name), command)
	}
	return h.wrong(fmt.Sprintf("volume %s is attached and has no Service", v.Name), command)
}

func (x index) serverHops(v rwx.Volume) []Hop {
	var hops []Hop
	for _, s := range x.servers[v.Name] {
		if s.Terminating {
			continue
		}
		h := hop(Server, s.Pod, s.Network)
		h.Node = s.Node
		show := fmt.Sprintf("kubectl -n %s describe pod %s", x.Names.Namespace, s.Pod)
		if addresses, err := multus.AddressesOn(s.Reported, s.Network); err == nil {
			for _, a := range addresses {
				h.Addresses = append(h.Addresses, a.String())
			}
		}
		switch {
		case s.Ready && s.Clash.Pod != "" && !s.Network.IsZero():
			h = h.wrong(clash("server pod", s.Pod, s.Network, s.Clash), show)
		case s.Ready:
			h = x.outOfLineHop(h, catalog.BlockedByServer, detachOr(v, show))
		case x.mayStart(v.Name, s.Created):
			h = h.waiting(startingServer(s), show)
		default:
			h = h.wrong(fmt.Sprintf("server pod %s is not Ready", s.Pod), show)
		}
		hops = append(hops, h)
	}
	if !v.Attached || len(v.Purposes) > 0 || len(hops) > 0 { // a backup needs no server
		return hops
	}
	h := hop(Server, "", multus.Attachment{})
	if starting := x.starting(v); starting != "" {
		return []Hop{h.waiting(starting, x.showServers(v.Name))}
	}
	return []Hop{h.wrong(fmt.Sprintf("volume %s is attached and has no server pod", v.Name), x.showServers(v.Name))}
}

// starting says which server of the volume starts; "" if one is Ready, or none may still become Ready.
func (x index) starting(v rwx.Volume) string {
	starting, none := "", true
	for _, s := range x.servers[v.Name] {
		switch {
		case s.Terminating:
			continue
		case s.Ready:
			return ""
		case x.mayStart(v.Name, s.Created):
			starting = startingServer(s)
		}
		none = false
	}
	if none && x.mayStart(v.Name, v.Since) {
		return fmt.Sprintf("the server of volume %s is starting: no pod yet", v.Name)
	}
	return starting
}

// mayStart reports whether a server that is not Ready may still become Ready by itself.
func (x index) mayStart(volume string, since time.Time) bool {
	return !since.IsZero() && x.Rollout.Now.Sub(since) < startLimit && !x.Failed[volume]
}

func startingServer(s rwx.Server) string {
	return fmt.Sprintf("server %s is starting: not Ready yet", s.Pod)
}

func (x index) showServers(volume string) string {
	return fmt.Sprintf("kubectl -n %s get pods -l %s=%s -o wide", x.Names.Namespace, x.Names.VolumeLabel, volume)
}

func (x index) outOfLineHop(h Hop, kind catalog.BlockerKind, command string) Hop {
	if message := x.outOfLine[[2]string{string(kind), h.Name}]; message != "" {
		noun := "pod "
		if kind == catalog.BlockedByService {
			noun = "Service "
		}
		return h.waiting(noun+h.Name+" "+message, command)
	}
	return h
}

// detachOr is the command that stops the workloads of the volume, which is waited for; else the other one.
func detachOr(v rwx.Volume, other string) string {
	if !v.Attached {
		return other
	}
	return cmp.Or(catalog.ScaleDown(v.Owners), other)
}

func (h Hop) waiting(message, command string) Hop {
	h.State, h.Message, h.Command = Waiting, message, command
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
