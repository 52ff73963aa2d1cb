package watchers

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// CephFSClient is a client's session with one MDS. A client has a session with
// each MDS that it works with, so it may come more than once.
type CephFSClient struct {
	MDS     string // who told it; "" if only one was asked
	ID      uint64
	Address Address
	State   string // open, stale, ...: of the session. A killed client's is open for 300 s

	// What the client says of itself; "" is what it didn't say. It proves nothing.
	Root     string // the path that it has mounted, "/" for the whole file system
	Hostname string
	EntityID string // its Ceph user, without the "client."
}

// CephFSClients is what MDSs have told.
type CephFSClients struct {
	// Answered are the MDSs that told, also those without a client. One that was
	// asked alone isn't named: its name is "".
	Answered []string
	Clients  []CephFSClient
}

// ParseClientLs reads the output of `ceph tell mds.* client ls --format json`,
// of one MDS or of many. MDSs that answered with an error aren't in it, see
// CephFSVolume.Clients.
func ParseClientLs(output []byte) (CephFSClients, error) {
	values, err := split(output)
	if err != nil {
		return CephFSClients{}, fmt.Errorf("client ls: %w", err)
	}
	var all CephFSClients
	for _, value := range values {
		if slices.Contains(all.Answered, value.mds) {
			return CephFSClients{}, fmt.Errorf("client ls: there are two answers of mds %q", value.mds)
		}
		all.Answered = append(all.Answered, value.mds)
		clients, err := parseSessions(value)
		if err != nil {
			return CephFSClients{}, fmt.Errorf("client ls: %w", err)
		}
		all.Clients = append(all.Clients, clients...)
	}
	return all, nil
}

type session struct {
	ID     *uint64 `json:"id"`
	State  string  `json:"state"`
	Inst   string  `json:"inst"` // client.5096 10.99.0.12:0/2687151374
	Entity struct {
		Address struct {
			Address string `json:"addr"` // 10.99.0.12:0
			Nonce   uint32 `json:"nonce"`
		} `json:"addr"`
	} `json:"entity"`
	// Not a struct: the keys are the client's own, and encoding/json would take
	// "ROOT" for "root".
	Metadata map[string]json.RawMessage `json:"client_metadata"`
}

func parseSessions(v value) ([]CephFSClient, error) {
	var sessions []session
	if err := json.Unmarshal(v.json, &sessions); err != nil {
		return nil, err
	}
	clients := make([]CephFSClient, 0, len(sessions))
	for _, s := range sessions {
		if s.ID == nil {
			return nil, fmt.Errorf("a client has no id")
		}
		address, err := s.address()
		if err != nil {
			return nil, fmt.Errorf("client %d: %w", *s.ID, err)
		}
		client := CephFSClient{
			MDS: v.mds, ID: *s.ID, Address: address, State: s.State,
			Hostname: s.text("hostname"), EntityID: s.text("entity_id"),
		}
		if root := s.text("root"); root != "" {
			client.Root = path.Clean("/" + root)
		}
		clients = append(clients, client)
	}
	return clients, nil
}

// address is written twice; both have to be the same.
func (s session) address() (Address, error) {
	var name, inst string
	if s.Inst != "" {
		var ok bool
		if name, inst, ok = strings.Cut(s.Inst, " "); !ok || name != fmt.Sprintf("client.%d", *s.ID) {
			return Address{}, fmt.Errorf("%q must be client.%d and its address", s.Inst, *s.ID)
		}
	}
	entity := s.Entity.Address.Address
	if inst == "" && entity == "" {
		return Address{}, errNotAnAddress
	}
	if entity == "" {
		return ParseAddress(inst)
	}
	address, err := ParseAddress(entity)
	if err != nil {
		return Address{}, err
	}
	address.Nonce = s.Entity.Address.Nonce
	if inst == "" {
		return address, nil
	}
	again, err := ParseAddress(inst)
	if err != nil {
		return Address{}, err
	}
	if again != address {
		return Address{}, fmt.Errorf("it is at %s, and at %s", address, again)
	}
	return address, nil
}

// text is a string of the client's metadata; what is none is left out.
func (s session) text(key string) string {
	var text string
	if json.Unmarshal(s.Metadata[key], &text) != nil {
		return ""
	}
	return text
}

// At are the sessions of clients that have mounted just this path: neither a
// path above it nor one below, and not csi-vol-10 for csi-vol-1.
func (c CephFSClients) At(volumePath string) []CephFSClient {
	volumePath = path.Clean("/" + volumePath)
	var found []CephFSClient
	for _, client := range c.Clients {
		if client.Root == volumePath {
			found = append(found, client)
		}
	}
	return found
}

// Addresses are the IP addresses of sessions, each once, in order.
func Addresses(clients []CephFSClient) []netip.Addr {
	var addresses []netip.Addr
	for _, client := range clients {
		addresses = append(addresses, client.Address.IP)
	}
	return sorted(addresses)
}

// RBDAddresses are the IP addresses of watchers, each once, in order.
func RBDAddresses(found []RBDWatcher) []netip.Addr {
	var addresses []netip.Addr
	for _, watcher := range found {
		addresses = append(addresses, watcher.Address.IP)
	}
	return sorted(addresses)
}

func sorted(addresses []netip.Addr) []netip.Addr {
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Compact(addresses)
}
