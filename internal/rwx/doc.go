// Package rwx is about shared volumes: the pods that serve, mount and use them, their Services, the
// addresses that are published for them, and mounts that have died.
//
// It is pure: values in, values out.
package rwx
