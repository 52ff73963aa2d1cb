package catalog

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogPath is the directory on nodes for the logs of instance managers of the v2
// data engine, and of no other component yet. Source: longhorn-manager
// controller/instance_manager_controller.go, getLogPath.
const LogPath Name = "log-path"

func logPathFamily() []Definition {
	return []Definition{{
		// Exactly the value of Longhorn's new setting; the normal form has no slash at the end.
		Name: LogPath, Default: "/var/lib/longhorn/logs/", Normalize: normalizeLogPath, Form: logPathForm, Since: "1.10", DangerZone: true, Gate: InstanceManagerIdle,
		Trait: LogPathTrait, Wants: wants(instanceManagerOf(EngineV2), normalizeLogPath),
		Affects: "instance-manager pods of the v2 data engine",
	}}
}

const logPathForm = `must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`

// normalizeLogPath refuses paths that Longhorn stores but does not use: malformed paths, and directories right below "/".
// Pods would keep the default, differ from the setting, and restart again and again.
func normalizeLogPath(value string) (string, error) {
	value = strings.TrimSpace(value)
	unprintable := !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl)
	if unprintable || !path.IsAbs(value) || slices.Contains(strings.Split(value, "/"), "..") {
		return "", malformed{form: logPathForm}
	}
	clean := path.Clean(value)
	if strings.Count(clean, "/") < 2 || strings.TrimSpace(clean) != clean {
		return "", malformed{form: logPathForm}
	}
	return clean, nil
}

// LogDirectoryTrait is the normal form of the log directory that a pod mounts.
func LogDirectoryTrait(directory string) string { return path.Clean(directory) }
