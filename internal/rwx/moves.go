package rwx

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// MovesAnnotation on an EndpointSlice of Fairlead's has Moves.
const MovesAnnotation = "fairlead.io/server-moves"

// Moves of a volume's server, in one IP family. A client resolves the server's name when it mounts, and keeps that address: once no
// server has it any more, the mount does not answer.
//
// Who had mounted is listed before another address is published, and both are one write. So whoever is listed has mounted an address
// of before, whatever clocks say.
type Moves struct {
	// Addresses that pods may have mounted that are in no list yet: those that are published, and those before that shared one
	// with them.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Left are the pods that there were when the server moved, by UID.
	Left map[string]LeftBehind `json:"left,omitempty"`
}

// LeftBehind is a pod that had mounted, or was about to mount, a volume whose server has moved.
type LeftBehind struct {
	// Addresses that it may have mounted. There are none if it was there before the record began, so that they are not known.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	Run
}

// Run is one run of a pod's containers.
type Run struct {
	// Boot is the boot ID of the node. After a reboot, the kubelet mounts again.
	Boot string `json:"boot"`
	// Containers is a digest of when they were made ready to start, or of their IDs; empty if it is not known that the pod has mounted
	// its volumes. A pod of another digest may have mounted again: its status can be of before a reboot.
	Containers string `json:"containers,omitempty"`
}

// mostBytes bounds the annotation: Kubernetes allows 256 KiB for all of an object. Later pods, by UID, are not reported.
const mostBytes = 200 << 10

// Begin a record for addresses that are published already. users, as in Next, may have mounted others before.
func Begin(published []netip.Addr, users map[string]Run) Moves {
	begun := Moves{Addresses: slices.Clone(published), Left: map[string]LeftBehind{}}
	for uid, run := range users {
		begun.Left[uid] = LeftBehind{Run: run}
	}
	return begun.bounded()
}

func (m Moves) bounded() Moves {
	for uids := slices.Sorted(maps.Keys(m.Left)); len(m.String()) > mostBytes; {
		half := len(uids) / 2
		for _, uid := range uids[half:] {
			delete(m.Left, uid)
		}
		uids = uids[:half]
	}
	return m
}

// LeavesBehind reports whether pods that have mounted the volume have to be listed before other addresses are published.
func (m Moves) LeavesBehind(published []netip.Addr) bool {
	return len(m.Addresses) > 0 && len(published) > 0 && !shareAddress(m.Addresses, published)
}

// Next are the moves once other addresses are published. users are the pods that use the volume, by UID; they are read if
// LeavesBehind.
func (m Moves) Next(published []netip.Addr, users map[string]Run) Moves {
	if len(published) == 0 {
		return m // the server may come back to its address
	}
	if !m.LeavesBehind(published) {
		return Moves{union(m.Addresses, published), m.Left}
	}
	left := map[string]LeftBehind{}
	for uid, run := range users {
		switch earlier, known := m.Left[uid]; {
		case known && len(earlier.Addresses) == 0 && earlier.Boot == run.Boot:
			left[uid] = earlier
		case known && earlier.Run == run && run.Containers != "":
			left[uid] = earlier
		case known && earlier.Boot == run.Boot: // it may have mounted in between
			if run.Containers == "" {
				run = earlier.Run
			}
			left[uid] = LeftBehind{union(earlier.Addresses, m.Addresses), run}
		default:
			left[uid] = LeftBehind{m.Addresses, run}
		}
	}
	return Moves{slices.Clone(published), left}.bounded()
}

// From are the addresses of which a pod has mounted one, if the server has none of them any more. It is unsure if the pod was started
// again since.
func (m Moves) From(uid string, run Run, published []netip.Addr) (from []netip.Addr, unsure bool) {
	left, known := m.Left[uid]
	if !known || len(left.Addresses) == 0 || left.Containers == "" || run.Containers == "" || run.Boot == "" || left.Boot != run.Boot || len(published) == 0 || shareAddress(left.Addresses, published) {
		return nil, false
	}
	return left.Addresses, left.Run != run
}

func union(a, b []netip.Addr) []netip.Addr {
	all := slices.Concat(a, b)
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

func shareAddress(a, b []netip.Addr) bool {
	return slices.ContainsFunc(a, func(address netip.Addr) bool { return slices.Contains(b, address) })
}

// String is JSON for MovesAnnotation.
func (m Moves) String() string {
	text, err := json.Marshal(m)
	if err != nil {
		return "" // addresses and strings always have a form
	}
	return string(text)
}

// errNotMoves is returned for text that Moves.String does not write.
var errNotMoves = errors.New("must be JSON with addresses and left")

// ParseMoves reads what Moves.String writes; "" is none.
func ParseMoves(text string) (Moves, error) {
	var m Moves
	if text == "" {
		return m, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return Moves{}, fmt.Errorf("%w: %w", errNotMoves, err)
	}
	return m, nil
}

// ServerMove is the move of a server that a mount did not follow, with addresses joined by commas.
type ServerMove struct {
	From, To string
	// Unsure says that the pod was started again since, and may have mounted again.
	Unsure bool
}

// IsZero tells that there was none.
func (m ServerMove) IsZero() bool { return m == ServerMove{} }

func joinAddresses(addresses []netip.Addr) string {
	var texts []string
	for _, a := range addresses {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

// Family is what is published of a volume in one IP family.
type Family struct {
	Published []netip.Addr
	Moves     Moves
}

// MovedAway is the move that a pod did not follow. In which family it has mounted is not known, so the server has to have moved in all.
func MovedAway(families []Family, uid string, run Run) ServerMove {
	var all, to []netip.Addr
	anyUnsure := false
	for _, f := range families {
		if len(f.Moves.Addresses)+len(f.Published) == 0 {
			continue // never published
		}
		from, unsure := f.Moves.From(uid, run, f.Published)
		if len(from) == 0 {
			return ServerMove{}
		}
		all, to, anyUnsure = append(all, from...), append(to, f.Published...), anyUnsure || unsure
	}
	return ServerMove{joinAddresses(all), joinAddresses(to), anyUnsure}
}
