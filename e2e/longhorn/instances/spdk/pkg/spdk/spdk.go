// Package spdk has what longhorn-manager v1.10.0 uses of the package of its name in
// github.com/longhorn/longhorn-spdk-engine, which module proxies may refuse.
package spdk

// DiskState of a disk of the v2 data engine.
type DiskState string

// DiskStateReady is longhorn-manager's for disks of files, too.
const DiskStateReady DiskState = "ready"
