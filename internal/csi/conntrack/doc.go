// Package conntrack deletes connection tracking entries that lead to former servers of an address.
//
// A client of a Stable or PerNodeStable service mounts a ClusterIP. When the address
// is repointed, new connections reach the new server. A connection that exists keeps
// its entry in the kernel's connection tracking, and with it the old server:
// kube-proxy clears entries of UDP only. A server that ended sends FIN or RST, and the
// client connects again. A server that hangs sends nothing, and the client repeats its
// requests to it until TCP gives up, from the same source port afterwards.
//
// Once the entry is deleted, the next packet is translated again: the new server answers
// with RST, and the client connects to it. A client whose window is closed may send that
// packet only after a quarter of a minute, so its socket is closed too, where the kernel
// can (CONFIG_INET_DIAG_DESTROY; IPv4).
//
// It works where the node's kernel translates addresses by connection tracking:
// kube-proxy in modes nftables and iptables. In mode ipvs kube-proxy's own connection
// table decides, in Cilium's replacement its BPF maps: neither is touched.
package conntrack
