// Package mounts mounts and unmounts NFS shares, and tells what is mounted.
//
// What is mounted is read from mountinfo, which asks no server. Everything that may
// ask a server has a deadline: mount(8) and umount(8) are killed with all they have
// started; a statfs(2) or chmod(2) that hangs keeps one thread per path, and later
// calls for the path wait for the same one.
//
// k8s.io/mount-utils reads mountinfo and builds the arguments of mount(8). Its
// Mounter is not used to run mount(8): it takes no deadline, and its
// CleanupMountWithForce begins with a stat(2) that may hang.
package mounts
