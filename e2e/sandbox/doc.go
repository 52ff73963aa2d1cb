// Package sandbox is a real control plane with Fairlead installed in it, for
// tests, the demo and development: etcd, API server, controllers, simulated
// nodes, what an installation of Longhorn leaves in the API, and Fairlead's own
// processes under their own service accounts. Nothing leaves this machine, and
// what it starts it stops.
//
// The program controlplane is started with --until-stdin-closes and a pipe as standard input: however the sandbox ends,
// the control plane ends too. ("go run" would not pass on signals.) In its folder:
//
//   - kubeconfig: an administrator's.
//   - ready: JSON with where everything is. It appears when CRDs are established, nodes are Ready and cert-manager has
//     issued a certificate, and goes when the control plane stops. After a SIGKILL it stays: compare
//     pids.controlplane with the process that was started.
//   - logs/COMPONENT.log.
//
// When the network-status of a running pod is removed, or is [], the simulated Multus attaches the pod again, with other
// addresses except those that it asks for. The annotation "simulator.fairlead.io/delay: 3s" on a pod or a
// NetworkAttachmentDefinition makes Multus late.
package sandbox
