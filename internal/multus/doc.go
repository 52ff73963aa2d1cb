// Package multus has networks, and the annotations of pods by which Multus attaches pods to
// networks and reports their addresses.
//
// It is pure: values in, values out.
package multus
