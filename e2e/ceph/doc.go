// Package ceph runs a real Ceph on one machine, to see what a fence does there:
// a monitor, a manager, two OSDs on files, two MDSs with a file system, and
// nodes to be clients, each at an address of its own.
//
// All of it is in a machine of its own (package machine), made by
// Inside: nothing of it is seen outside, and the kernel ends it with the process
// that started it. It needs root, iproute2, util-linux and Debian's Ceph
// packages (Packages), and neither systemd nor containers.
//
// The program that shows fencing with it is fencing, `make e2e-ceph`.
package ceph
