package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Window is a recurring period in which restarts may begin.
type Window struct {
	// Days on which the window opens; empty is every day.
	Days []time.Weekday
	// Start is the time of day at which the window opens, since midnight.
	Start time.Duration
	// Length of the window, at most a week.
	Length time.Duration
	// Location of Start and Days.
	Location *time.Location
}

// Windows are the periods in which restarts may begin. Without windows, restarts may always begin.
type Windows []Window

// Closed returns the time until a window opens, at most a week; 0 if one is open.
func (w Windows) Closed(now time.Time) time.Duration {
	if len(w) == 0 {
		return 0
	}
	return slices.MinFunc(w, func(a, b Window) int { return cmp.Compare(a.closed(now), b.closed(now)) }).closed(now)
}

// closed checks the days around now: a window that opened last week may still be open, and the next
// may open next week.
func (w Window) closed(now time.Time) time.Duration {
	local := now.In(w.Location)
	wait := 8 * 24 * time.Hour
	for day := -8; day <= 8; day++ {
		midnight := time.Date(local.Year(), local.Month(), local.Day()+day, 0, 0, 0, 0, w.Location)
		if len(w.Days) > 0 && !slices.Contains(w.Days, midnight.Weekday()) {
			continue
		}
		// By local time, also on the day of a change to or from daylight saving time.
		opens := time.Date(midnight.Year(), midnight.Month(), midnight.Day(), 0, 0, int(w.Start/time.Second), 0, w.Location)
		switch {
		case !opens.After(now) && now.Before(opens.Add(w.Length)):
			return 0
		case opens.After(now):
			wait = min(wait, opens.Sub(now))
		}
	}
	return wait
}

// WindowBlocker says when the next window opens.
func WindowBlocker(now time.Time, closed time.Duration) catalog.Blocker {
	return catalog.Blocker{Kind: catalog.BlockedByTime, Name: catalog.TimeOfWindows, Message: fmt.Sprintf(
		"restarts begin in a maintenance window only; the next opens at %s", now.Add(closed).UTC().Truncate(time.Minute).Format(time.RFC3339))}
}

// sooner returns the shorter of two waits; 0 is no wait.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
