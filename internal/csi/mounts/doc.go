// Package mounts mounts and unmounts NFS shares, and reads what is mounted.
//
// Mounts are read from mountinfo, which asks no server. Every operation that may ask
// a server is a command with a deadline, and is killed with all it has started:
// mount, umount, stat, chmod. If the kernel keeps a command blocked, later calls for
// the same path wait for that command, and no other path is blocked.
//
// k8s.io/mount-utils reads mountinfo and builds the arguments of mount(8). Its
// Mounter is not used to run mount(8): it takes no deadline, and its
// CleanupMountWithForce begins with a stat(2) that may hang.
package mounts
