// Package datapath follows the traffic of a shared volume from the nodes that mount the volume to the
// server, and finds the hops that disagree. The rules are those of admission and of the controllers.
package datapath
