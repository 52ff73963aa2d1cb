package settingsapi

import (
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cluster"
)

// etag combines the resource versions of Fairlead's object and of the storage
// system's object, "-" if there is none. Each change of either object, also of a
// status, changes the tag.
func etag(s cluster.SettingState) string {
	own, system := "-", "-"
	if s.Own != nil {
		own = s.Own.ResourceVersion
	}
	if s.System != nil {
		system = s.System.ResourceVersion
	}
	return fmt.Sprintf("%q", own+"."+system)
}

// matches reports whether one tag of an If-Match header is the setting's tag (RFC
// 9110, 13.1.1). A setting of the catalog always exists, so "*" matches.
func matches(header []string, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if candidate = strings.TrimSpace(candidate); candidate == "*" || candidate == tag {
			return true
		}
	}
	return false
}
