// Package watchers reads from Ceph who has a volume open: the watchers of an
// RBD image, and the clients of a CephFS subvolume. A fence is held against
// addresses; this is the storage's own word on what these are.
//
// It is text in, values out: no process is started here. RBDImage and
// CephFSVolume say what to ask, the Parse functions read what came back.
//
// Whoever reads an answer is about to cut off a node, so the parsers would
// rather fail than guess: no answer is an error and not "nobody", an address
// that can't be read is an error and not left out.
//
// What the answers look like was taken from a running Ceph, see testdata and
// e2e/ceph:
//
//   - `ceph tell mds.*` puts `mds.<name>: ` before each answer if it asks more
//     than one MDS, and no name if it asks one.
//   - A standby MDS answers `Error ENOSYS:` on stderr, and makes the exit code
//     38 though all others have answered. So the exit code says nothing; that
//     each active MDS is among those who answered does, see CephFSVolume.Clients.
//   - `ceph osd blocklist ls --format json` writes two lists, one after the
//     other, and the bits of a range where an address has its nonce.
//   - A killed client's watch stays for 30 s and its CephFS session for 300 s.
//     That somebody watches doesn't say that it lives.
package watchers
