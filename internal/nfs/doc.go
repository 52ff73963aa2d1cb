// Package nfs is the domain of NFS services: a set of servers that export the
// same shares, and how clients reach them. It holds what its sub-packages share:
// addresses, backends, their health, and problems with what users wrote.
//
//   - health decides from probe results which backends are up;
//   - assign decides which backend a node uses, and what a rebalance would move;
//   - publish decides what Services and EndpointSlices should be;
//   - options reads mount options, shares and sources of mounts;
//   - volume reads what a PersistentVolume asks for;
//   - spec reads an NFSService and its status;
//   - plan explains assignments, and plans changes of backends.
//
// All of it is pure: no client, no clock, no logger, no I/O. The controller, the
// attacher, the CSI node plugin, admission and the command line use the same functions.
package nfs
