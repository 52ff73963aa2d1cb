package ui

import (
	"fmt"
	"net/http"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cli/status"
)

type settingsData struct {
	Profiles []settingsProfile
	Form     planForm
	Now      time.Time
}

type settingsProfile struct {
	Profile, Namespace string
	Waiting, Applied   []v1.Setting
}

// settings of the danger zone, as `fairlead settings` shows them, those that are not applied first.
func settings(_ *server, _ *http.Request, now *reading) page {
	data := settingsData{Now: now.at, Form: formOf(now)}
	for _, p := range now.status.Profiles {
		shown := settingsProfile{Profile: p.Profile, Namespace: p.Namespace, Waiting: p.Waiting}
		for _, s := range p.Settings() {
			if s.Applied {
				shown.Applied = append(shown.Applied, s)
			}
		}
		data.Profiles = append(data.Profiles, shown)
	}
	return page{title: "Settings", menu: "/settings", head: "settings-head", live: "settings", data: data}
}

type settingData struct {
	v1.Setting
	Progress []bar
	// Hidden blockers are beyond the first ones of the list.
	Hidden int
	Now    time.Time
}

// setting shows one setting of a profile, as `fairlead settings NAME` does.
func setting(_ *server, r *http.Request, now *reading) page {
	name, profile := parameter(r, "setting"), r.URL.Query().Get("profile")
	var known []string
	for _, p := range now.status.Profiles {
		for _, s := range p.Settings() {
			known = append(known, s.Name)
			if s.Name != name || profile != "" && profile != p.Profile {
				continue
			}
			data := settingData{Setting: s, Progress: progressOf(p, name), Now: now.at}
			data.Hidden = max(0, len(s.Blockers)-longest)
			data.Blockers = s.Blockers[:len(s.Blockers)-data.Hidden]
			return page{title: "Setting " + name, menu: "/settings", head: "setting-head", live: "setting", data: data}
		}
	}
	return notFound("/settings", fmt.Sprintf("No setting of the danger zone has the name %q%s", name, cli.DidYouMean(name, known)))
}

func progressOf(p status.ProfileView, setting string) []bar {
	var bars []bar
	for _, c := range p.Progress {
		if c.Setting == setting {
			bars = append(bars, bar{c.Kind, c.Updated, c.Total})
		}
	}
	return bars
}
