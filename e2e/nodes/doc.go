// Package nodes runs a cluster of real nodes on one machine: kubelet, containerd, kube-proxy, Multus and CNI plugins, each node in
// namespaces of its own, with a management link and a storage link.
package nodes
