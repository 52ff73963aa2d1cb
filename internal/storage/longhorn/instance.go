package longhorn

import "strings"

// VolumeOfInstance is the volume that an engine, frontend or replica was named after:
// VOLUME-e-0, VOLUME-ef-0, VOLUME-r-1a2b3c4d.
// Source: longhorn-manager types/types.go, GenerateEngineNameForVolume and those beside it.
func VolumeOfInstance(name string) string {
	for range 2 {
		name = name[:max(0, strings.LastIndex(name, "-"))]
	}
	return name
}
