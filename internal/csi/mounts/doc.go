// Package mounts mounts and unmounts NFS shares, and tells what is mounted.
//
// What is mounted is read from mountinfo, which asks no server. Everything that may
// ask a server is a command with a deadline, and is killed with all it has started:
// mount, umount, stat, chmod. One that the kernel does not let go blocks nothing:
// later calls for the same path wait for the same one.
//
// k8s.io/mount-utils reads mountinfo and builds the arguments of mount(8). Its
// Mounter is not used to run mount(8): it takes no deadline, and its
// CleanupMountWithForce begins with a stat(2) that may hang.
package mounts
