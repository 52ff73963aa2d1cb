// Package storage is the domain: networks, the Multus annotations that ask for
// them, the profiles that say how a storage system looks in a cluster, and
// shared volumes. It knows no client, no clock and no logger.
package storage
