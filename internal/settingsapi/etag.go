package settingsapi

import (
	"fmt"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cluster"
)

// etag names what a setting is shown from: the revisions of Fairlead's own object
// and of the storage system's, "-" where there is none. Each change of either,
// of a status too, changes it.
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

// matches tells whether one of an If-Match header's tags is the setting's (RFC
// 9110, 13.1.1). A setting of the catalog always exists, so "*" matches.
func matches(header []string, tag string) bool {
	for candidate := range strings.SplitSeq(strings.Join(header, ","), ",") {
		if candidate = strings.TrimSpace(candidate); candidate == "*" || candidate == tag {
			return true
		}
	}
	return false
}
