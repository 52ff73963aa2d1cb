package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// MaintenanceWindow is a weekly period in which restarts may begin.
type MaintenanceWindow struct {
	// Days on which the window opens: Mon, Tue, Wed, Thu, Fri, Sat, Sun. Default every day.
	Days []string `json:"days,omitempty"`
	// Start is the time of day at which the window opens, such as 22:00.
	Start string `json:"start"`
	// Length of the window, such as 4h: at least 1m, at most 168h (a week).
	Length metav1.Duration `json:"length"`
	// TimeZone of Start and Days in the IANA database, such as Europe/Berlin. Default UTC.
	TimeZone string `json:"timeZone,omitempty"`
}

// Policy returns the roll-out policy of a validated configuration.
func (c *Configuration) Policy() rollout.Policy {
	p := rollout.Policy{Settle: c.Networks.Settle.Duration, Gate: c.Networks.Gate}
	for _, w := range c.MaintenanceWindows {
		p.Windows = append(p.Windows, w.window(&problems{}, nil))
	}
	return p
}

var weekdays = []string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

const week = 7 * 24 * time.Hour

func (w MaintenanceWindow) window(p *problems, path *field.Path) rollout.Window {
	window := rollout.Window{Length: w.Length.Duration}
	for i, day := range w.Days {
		n := slices.IndexFunc(weekdays, func(name string) bool { return strings.EqualFold(day, name) })
		p.unless(n >= 0, field.NotSupported(path.Child("days").Index(i), day, weekdays))
		window.Days = append(window.Days, time.Weekday(n))
	}
	start, err := time.Parse("15:04", w.Start)
	p.unless(err == nil, field.Invalid(path.Child("start"), w.Start, "must be a time of day, for example 22:00"))
	window.Start = time.Duration(start.Hour())*time.Hour + time.Duration(start.Minute())*time.Minute
	p.unless(time.Minute <= w.Length.Duration && w.Length.Duration <= week, field.Invalid(path.Child("length"), w.Length.Duration.String(), "must be from 1m to 168h"))
	if window.Location, err = time.LoadLocation(w.TimeZone); err != nil {
		p.invalid(path.Child("timeZone"), w.TimeZone, fmt.Sprintf("must be a name of the IANA time zone database, for example Europe/Berlin: %v", err))
	}
	return window
}
