package cephcli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
)

var errIncomplete = errors.New("the answer lacks what was asked for")

// ParseStatus returns the addresses of an image's clients. No clients is no error.
func ParseStatus(output []byte) ([]netip.Addr, error) {
	var status struct {
		Watchers *[]struct {
			Address string `json:"address"`
		} `json:"watchers"`
	}
	if err := json.Unmarshal(output, &status); err != nil || status.Watchers == nil {
		return nil, fmt.Errorf("rbd status: %w", errors.Join(errIncomplete, err))
	}
	var texts []string
	for _, w := range *status.Watchers {
		texts = append(texts, w.Address)
	}
	return addresses("rbd status", texts...)
}

// ParseClientLs returns the addresses of the clients of each directory, by the path that the clients report.
func ParseClientLs(output []byte) (map[string][]netip.Addr, error) {
	var sessions []struct {
		Inst string `json:"inst"` // client.5096 10.99.0.12:0/2687151374
		// Not a struct: the keys are the client's own, and encoding/json would take "ROOT" for "root".
		Metadata map[string]any `json:"client_metadata"`
	}
	if err := json.Unmarshal(output, &sessions); err != nil || sessions == nil {
		return nil, fmt.Errorf("client ls: %w", errors.Join(errIncomplete, err))
	}
	mounted := map[string][]netip.Addr{}
	for _, s := range sessions {
		_, text, _ := strings.Cut(s.Inst, " ")
		at, err := addresses("client ls", text)
		if err != nil {
			return nil, err
		}
		if root, _ := s.Metadata["root"].(string); root != "" {
			root = path.Clean("/" + root)
			mounted[root] = append(mounted[root], at...)
		}
	}
	return mounted, nil
}

// MDSs are the servers of file systems.
type MDSs struct {
	Addresses []netip.Addr // standbys too
	// Ranks of each file system. A file system with an unserved rank is left out, since some clients are unknown.
	Ranks map[string][]int
}

type mds struct {
	State string `json:"state"`
	Addr  string `json:"addr"`
}

// ParseMDSStat reads the addresses and ranks of the servers of file systems.
func ParseMDSStat(output []byte) (MDSs, error) {
	var stat struct {
		FSMap struct {
			FileSystems *[]struct {
				MDSMap struct {
					Name string         `json:"fs_name"`
					In   []int          `json:"in"`
					Info map[string]mds `json:"info"`
				} `json:"mdsmap"`
			} `json:"filesystems"`
			Standbys []mds `json:"standbys"`
		} `json:"fsmap"`
	}
	if err := json.Unmarshal(output, &stat); err != nil || stat.FSMap.FileSystems == nil {
		return MDSs{}, fmt.Errorf("mds stat: %w", errors.Join(errIncomplete, err))
	}
	ranks := map[string][]int{}
	var texts []string
	for _, standby := range stat.FSMap.Standbys {
		texts = append(texts, standby.Addr)
	}
	for _, fs := range *stat.FSMap.FileSystems {
		active := 0
		for _, server := range fs.MDSMap.Info {
			if texts = append(texts, server.Addr); server.State == "up:active" {
				active++
			}
		}
		if active > 0 && active == len(fs.MDSMap.In) {
			ranks[fs.MDSMap.Name] = fs.MDSMap.In
		}
	}
	at, err := addresses("mds stat", texts...)
	return MDSs{at, ranks}, err
}

// ParseMgrMetadata returns the addresses of all managers, standbys too.
func ParseMgrMetadata(output []byte) ([]netip.Addr, error) {
	var managers []struct {
		Addrs string `json:"addrs"`
	}
	if err := json.Unmarshal(output, &managers); err != nil || managers == nil {
		return nil, fmt.Errorf("mgr metadata: %w", errors.Join(errIncomplete, err))
	}
	var texts []string
	for _, m := range managers {
		texts = append(texts, m.Addrs)
	}
	return addresses("mgr metadata", texts...)
}

// entity is an address as Ceph writes it: 10.0.0.1:0/123, v1:[2001:db8::1]:0/123. IPv6 must be in brackets:
// without them 2001:db8::1:0 is an address of its own, or one with a port.
var entity = regexp.MustCompile(`^(?:(?:v1|v2|any):)?([0-9.]+:[0-9]+|\[[0-9A-Fa-f:.]+\]:[0-9]+)(?:/[0-9]{1,10})?$`)

// addresses are the IP addresses of texts, in order, each once. A text may be a list in brackets, with an entry
// for each version of Ceph's protocol.
func addresses(command string, texts ...string) ([]netip.Addr, error) {
	found := []netip.Addr{}
	for _, text := range texts {
		entries := text
		if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
			entries = text[1 : len(text)-1]
		}
		for entry := range strings.SplitSeq(entries, ",") {
			match := append(entity.FindStringSubmatch(entry), "", "")
			at, err := netip.ParseAddrPort(match[1])
			// Ceph writes 0.0.0.0 for an unknown address.
			if ip := at.Addr().Unmap(); err == nil && !ip.IsUnspecified() && !ip.IsMulticast() {
				found = append(found, ip)
				continue
			}
			return nil, fmt.Errorf("%s: %.80q is not an address of one host, like 10.0.0.1:0/123", command, text)
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	return slices.Compact(found), nil
}
