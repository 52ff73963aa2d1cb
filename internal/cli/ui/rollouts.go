package ui

import (
	"net/http"
	"time"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/cli/status"
)

type rolloutsData struct {
	Profiles []rolloutsProfile
	Now      time.Time
}

type rolloutsProfile struct {
	status.ProfileView
	Clients  bar
	Settings []rollout
}

type rollout struct {
	v1.Setting
	Bars []bar
}

// rollouts shows how far the network for RWX volumes and each setting are rolled out.
func rollouts(_ *server, _ *http.Request, now *reading) page {
	data := rolloutsData{Now: now.at}
	for _, p := range now.status.Profiles {
		shown := rolloutsProfile{ProfileView: p, Clients: bar{"Clients on " + status.NetworkName(p.Network.Clients), p.Network.Updated, p.Network.Total}}
		for _, s := range p.Waiting {
			shown.Settings = append(shown.Settings, rollout{s, progressOf(p, s.Name)})
		}
		data.Profiles = append(data.Profiles, shown)
	}
	return page{title: "Roll-outs", menu: "/rollouts", live: "rollouts", data: data}
}
