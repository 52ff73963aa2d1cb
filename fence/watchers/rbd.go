package watchers

import (
	"encoding/json"
	"errors"
	"fmt"
)

// RBDWatcher is a client that has an RBD image open.
type RBDWatcher struct {
	Address Address
	Client  uint64 // its number in this Ceph, new with each connection
	Cookie  uint64 // of this watch among those of the client
}

// ParseRBDStatus reads the output of `rbd status --format json`. An image that
// nobody has open gives no watcher and no error.
func ParseRBDStatus(output []byte) ([]RBDWatcher, error) {
	text, err := one(output)
	if err != nil {
		return nil, fmt.Errorf("rbd status: %w", err)
	}
	var status struct {
		Watchers *[]struct {
			Address string  `json:"address"`
			Client  *uint64 `json:"client"`
			Cookie  uint64  `json:"cookie"`
		} `json:"watchers"`
	}
	if err := json.Unmarshal(text, &status); err != nil {
		return nil, fmt.Errorf("rbd status: %w", err)
	}
	if status.Watchers == nil {
		return nil, errors.New("rbd status: the answer says nothing of watchers")
	}
	found := make([]RBDWatcher, 0, len(*status.Watchers))
	for _, watcher := range *status.Watchers {
		address, err := ParseAddress(watcher.Address)
		if err != nil {
			return nil, fmt.Errorf("rbd status: %w", err)
		}
		if watcher.Client == nil {
			return nil, fmt.Errorf("rbd status: the watcher at %s has no client", address)
		}
		found = append(found, RBDWatcher{Address: address, Client: *watcher.Client, Cookie: watcher.Cookie})
	}
	return found, nil
}
