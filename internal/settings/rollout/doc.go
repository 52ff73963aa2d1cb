// Package rollout decides the next step of bringing clients and servers of RWX volumes onto
// another network: clients first when the network is enabled, servers first when it is disabled.
package rollout
