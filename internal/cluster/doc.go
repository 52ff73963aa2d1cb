// Package cluster reads the cluster: it gathers the facts that rules and plans
// need. The same reader serves caches and live reads; whoever decides something
// that hurts when it is wrong reads live.
package cluster
