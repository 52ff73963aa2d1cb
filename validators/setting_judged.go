package validators

import (
	"slices"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// JudgesSetting reports whether Fairlead judges a write of a setting. old is nil for a creation, s for a deletion.
// Not judged are:
//   - settings of the storage system outside the danger zone: the storage system checks them
//   - an update that keeps the value
//   - the creation of Fairlead's own setting without a value: the controller creates it to report status
//   - the creation of the storage system's setting with a default: longhorn-manager creates missing settings when it
//     starts, and does not start if it can't
//
// Source: longhorn-manager v1.7.2 datastore/longhorn.go, createNonExistingSettingCRsWithDefaultSetting.
func JudgesSetting(s, old *Setting, own bool) bool {
	written := s
	if written == nil {
		written = old
	}
	d, known := catalog.Lookup(written.Metadata.Name)
	// AutoCleanup may contradict a setting of the danger zone.
	ofStorage := d.DangerZone || written.Metadata.Name == string(catalog.AutoCleanup)
	switch {
	case !own && !ofStorage:
		return false
	case s == nil:
		return true
	case old != nil:
		return !s.HasValueOf(*old)
	case s.Value == nil:
		return !own || !known
	}
	return own || !known || *s.Value != d.Default && !slices.Contains(d.OtherDefaults, *s.Value)
}

// HasValueOf reports whether both settings have the same value as written, or both have none.
func (s Setting) HasValueOf(other Setting) bool {
	if s.Value == nil || other.Value == nil {
		return s.Value == other.Value
	}
	return *s.Value == *other.Value
}
