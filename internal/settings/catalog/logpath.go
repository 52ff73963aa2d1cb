package catalog

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LogPath is the directory on nodes for the logs of instance managers of the v2
// data engine; the setting says nothing of others yet. Source: longhorn-manager
// controller/instance_manager_controller.go, getLogPath.
const LogPath Name = "log-path"

func logPathFamily() []Definition {
	return []Definition{{
		// To the letter what Longhorn creates its setting with; the normal form is without the slash.
		Name: LogPath, Default: "/var/lib/longhorn/logs/", Normalize: normalizeLogPath, Since: "1.10", DangerZone: true, Gate: InstanceManagerIdle,
		Trait: LogPathTrait, Wants: wants(instanceManagerOf(EngineV2), normalizeLogPath),
		Affects: "instance-manager pods of the v2 data engine",
	}}
}

const logPathForm = `must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`

// normalizeLogPath is strict where Longhorn is loose: what can't be a directory
// for logs, or is right below "/", is stored there and then not used. Pods keep
// the default, differ from the setting, and are restarted again and again.
func normalizeLogPath(value string) (string, error) {
	value = strings.TrimSpace(value)
	odd := !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl)
	if odd || !path.IsAbs(value) || slices.Contains(strings.Split(value, "/"), "..") {
		return "", malformed{form: logPathForm}
	}
	clean := path.Clean(value)
	if strings.Count(clean, "/") < 2 || strings.TrimSpace(clean) != clean {
		return "", malformed{form: logPathForm}
	}
	return clean, nil
}

// LogDirectoryTrait writes the directory that a pod mounts for its logs as the
// setting asks for it.
func LogDirectoryTrait(directory string) string { return path.Clean(directory) }
