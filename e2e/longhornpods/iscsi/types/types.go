// Package types has the names of Longhorn's frontends.
package types

const (
	FrontendTGTBlockDev = "tgt-blockdev"
	FrontendTGTISCSI    = "tgt-iscsi"
)
