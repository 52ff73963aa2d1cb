package fence

import (
	"cmp"
	"net/netip"
	"time"
)

// Policy is what the configuration says of fencing.
type Policy struct {
	// MaxAge of the ledger when the node is lost.
	MaxAge time.Duration
	// ReadyFor is how long a node must be Ready before it is readmitted.
	ReadyFor time.Duration
	// Automatic: readmit a node without waiting for its taint to be removed.
	Automatic bool
	// GiveUpAfter is how long after its loss a fenced and drained machine whose Node was deleted is unfenced without an operator;
	// 0: never. A missing Node does not prove that the machine is off.
	GiveUpAfter time.Duration
	// Storages by driver. A driver without a StoragePolicy is not protected.
	Storages func(driver string) (StoragePolicy, bool)
}

// StoragePolicy is what the configuration says of one storage system.
type StoragePolicy struct {
	Mode Mode
	// Profile of the driver, by name.
	Profile string
	// Source of the addresses that clients are fenced by: no other source is believed.
	// Empty is SourceCSIAddonsNode.
	Source string
	// ClientRanges contain the addresses of this cluster's clients; empty: any.
	// An address outside belongs to another cluster on the same storage.
	ClientRanges []netip.Prefix
	// ClusterRanges replace ClientRanges for the storage clusters that they name, by clusterID.
	ClusterRanges map[string][]netip.Prefix
}

// Mode of fencing for one storage system.
type Mode string

// Modes.
const (
	// ModeFence: keep the ledger, hold the volumes of lost nodes, and fence.
	ModeFence Mode = "fence"
	// ModeGuard: keep the ledger and hold the volumes; an operator releases them.
	ModeGuard Mode = "guard"
	// ModeOff: hold and fence nothing. Unconfirmed fences are withdrawn at once,
	// confirmed fences when their node has rebooted.
	ModeOff Mode = "off"
)

// Defaults of a Policy.
const (
	// DefaultMaxAge of the ledger when the node is lost.
	DefaultMaxAge = 15 * time.Minute
	// DefaultReadyFor is how long a rebooted node must be Ready before it is readmitted.
	DefaultReadyFor = time.Minute
)

// Mode in effect for a driver.
func (p Policy) Mode(driver string) Mode {
	s, protected := p.Storages(driver)
	if !protected || s.Mode == "" {
		return ModeOff
	}
	return s.Mode
}

// source of a driver's addresses that is believed.
func (p Policy) source(driver string) string {
	s, _ := p.Storages(driver)
	return cmp.Or(s.Source, SourceCSIAddonsNode)
}
