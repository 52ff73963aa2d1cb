// Package nfs is `fairlead nfs`: the command shows NFS services, their backends, and plans of changes to them.
package nfs
