// Package machine gives a program a Linux machine of its own: its own processes,
// network, mounts and host name, made of namespaces. Whatever is started in it ends
// with it, and nothing in it reaches the network of the real machine.
//
// Its folders are those of the real machine, but for what a Spec says.
package machine

import "net/netip"

// Spec says what is different in the machine.
type Spec struct {
	// Addresses belong to the machine, all of each range: what listens on every address
	// is reached at any of these.
	Addresses []netip.Prefix
	// Hosts are names that /etc/hosts has.
	Hosts map[string]netip.Addr
	// Folders are empty at first, and in memory. A folder may exist in the real machine.
	Folders []string
	// Files are below Folders, or below folders that the real machine does not have.
	Files []File
	// Binds show a folder at another path, too. The key is the other path.
	Binds map[string]string
	// Added shows one more file in a folder of the real machine, such as /sbin/mount.nfs. The key
	// is its path, the value a file of the real machine.
	Added map[string]string
	// Programs are in a folder that PATH begins with.
	Programs []File
	// Listen is a TCP address of the real machine, such as 127.0.0.1:0. A program inside takes
	// its connections, see Listener. Empty is none.
	Listen string
}

// File with a text.
type File struct {
	Path string
	Text string
	// Program makes the file executable.
	Program bool
}
