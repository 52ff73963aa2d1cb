// Package plan is `fairlead plan`: the command shows the effect of settings on a cluster.
package plan
