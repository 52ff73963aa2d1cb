package rollout

import (
	"testing"
	"time"
)

func TestWindowsClosed(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	saturdays := Window{Days: []time.Weekday{time.Saturday}, Start: 22 * time.Hour, Length: 4 * time.Hour, Location: time.UTC}
	nights := Window{Start: time.Hour, Length: 2 * time.Hour, Location: time.UTC}
	for name, test := range map[string]struct {
		windows Windows
		now     string
		want    time.Duration
	}{
		"no window":                        {nil, "2026-01-01T12:00:00Z", 0},
		"it opens now":                     {Windows{saturdays}, "2026-01-03T22:00:00Z", 0},
		"a moment before":                  {Windows{saturdays}, "2026-01-03T21:59:00Z", time.Minute},
		"open past midnight":               {Windows{saturdays}, "2026-01-04T01:59:59Z", 0},
		"just over":                        {Windows{saturdays}, "2026-01-04T02:00:00Z", 6*24*time.Hour + 20*time.Hour},
		"every day":                        {Windows{nights}, "2026-01-01T04:00:00Z", 21 * time.Hour},
		"the first of two":                 {Windows{saturdays, nights}, "2026-01-03T21:00:00Z", time.Hour},
		"by the clock of the place":        {Windows{{Start: time.Hour, Length: time.Hour, Location: berlin}}, "2026-01-01T00:30:00Z", 0},
		"by the same clock in summer":      {Windows{{Start: time.Hour, Length: time.Hour, Location: berlin}}, "2026-07-01T00:30:00Z", 22*time.Hour + 30*time.Minute},
		"a week long, opened six days ago": {Windows{{Days: []time.Weekday{time.Sunday}, Length: 7 * 24 * time.Hour, Location: time.UTC}}, "2026-01-03T12:00:00Z", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.windows.Closed(at(test.now)); got != test.want {
				t.Fatalf("got %v, want %v", got, test.want)
			}
		})
	}
}
