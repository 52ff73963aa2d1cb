// Package dangerzone has the scenarios of Longhorn's danger zone that run with the stand-in (e2e) and beside the real
// manager (e2e/beside).
package dangerzone

import (
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Row changes settings one after the other, and back again.
type Row struct {
	Settings []string
	// Given settings have their other value all the time.
	Given []string
	// Attached volumes are attached at the change, and detached at the change back.
	Attached []string
	// Core rows with the stand-in always run, the others with -tags long.
	Core bool
	// Restart restarts the real manager after the change: it syncs all settings again.
	Restart bool
}

// Name of the subtest.
func (r Row) Name() string {
	return strings.Join(r.Settings, "+") + " " + strings.Join(r.Attached, "+")
}

// Combinations of two settings that restart components: each with a network, and two at a time.
func Combinations(network, rwx string, given, restarting []string) (rows []Row) {
	for i, name := range restarting {
		rows = append(rows, Row{Settings: []string{network, name}, Attached: []string{"rwo"}},
			Row{Settings: []string{rwx, name}, Given: given, Attached: []string{"rwo", "rwx"}})
		for _, other := range restarting[i+1:] {
			rows = append(rows, Row{Settings: []string{name, other}, Attached: []string{"rwo"}})
		}
	}
	return rows
}

// Quiet is longer than any reaction to a change takes to begin: Longhorn retries within 50 ms, Fairlead within 2 s.
const Quiet = 3 * time.Second

// Changes reports whether a write changed a pod, a template or a setting of Longhorn's.
func Changes(w sandbox.Write) bool {
	resource, _, _ := strings.Cut(w.Resource, "/")
	return w.Changed && w.Namespace == longhorn.DefaultNames().Namespace && slices.Contains([]string{"pods", "daemonsets", "deployments", "settings"}, resource)
}
