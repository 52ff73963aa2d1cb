package ceph

// ClientsUser is the user of fairlead ceph-clients. ClientsCaps are its rights: read the maps, and the headers of
// RBD images. The data of images is in objects of other names. docs/fencing-setup.md says the same.
const ClientsUser = "fairlead-ceph-clients"

var ClientsCaps = []string{
	"mon", "allow r",
	"osd", "allow r class-read object_prefix rbd_id., allow r class-read object_prefix rbd_header., " +
		"allow r class-read object_prefix rbd_directory, allow r class-read object_prefix rbd_trash, " +
		"allow r class-read object_prefix rbd_children, allow r class-read object_prefix rbd_info",
}

// CephFSCaps are what the user needs beside these to ask for the clients of a file system. It is far more than to
// read: an MDS answers no user who may not do everything with it.
var CephFSCaps = []string{"mds", "allow *"}
