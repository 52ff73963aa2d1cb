package catalog

import (
	"regexp"
	"strings"
)

// The settings that say which workloads may restart when their mount is dead. These are outside the danger zone:
// a change restarts no pod and is in effect at once. Source: longhorn-manager types/setting.go.
// Longhorn has the blacklist from v1.10.1, empty by default.
const (
	AutoDeletePod          Name = "auto-delete-pod-when-volume-detached-unexpectedly"
	AutoDeletePodBlacklist Name = "blacklist-for-auto-delete-pod-when-volume-detached-unexpectedly"
)

func workloadFamily() []Definition {
	const affects = "workload pods whose mount has died, from the next one on"
	return []Definition{
		{Name: AutoDeletePod, Default: "true", Normalize: normalizeBool, Form: boolForm, Since: "1.1", ByFairlead: true, Affects: affects, Gate: AtOnce},
		{Name: AutoDeletePodBlacklist, Normalize: normalizeKinds, Form: kindsForm, Since: "1.10", ByFairlead: true, Affects: affects, Gate: AtOnce},
	}
}

const kindsForm = `must be <group>/<Kind> of controllers, separated by ";", like apps/StatefulSet;apps/DaemonSet, or "" for none`

// kindForm is <group>/<Kind>; the core group has no name.
var kindForm = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?/[A-Z][A-Za-z0-9]*$`)

func normalizeKinds(value string) (string, error) {
	kinds := Kinds(value)
	for _, kind := range kinds {
		if !kindForm.MatchString(kind) {
			return "", malformed{form: kindsForm}
		}
	}
	return strings.Join(kinds, ";"), nil
}

// Kinds parses a list of <group>/<Kind>, separated by semicolons.
func Kinds(value string) []string {
	var kinds []string
	for kind := range strings.SplitSeq(value, ";") {
		if kind = strings.TrimSpace(kind); kind != "" {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}
