package ui

import (
	"net/http"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

// longest list on a view that is not paged.
const longest = 20

type overviewData struct {
	status.View
	Summary string
	Parts   []overviewProfile
	Notes   []string
	Now     time.Time
	Program string
}

type overviewProfile struct {
	status.ProfileView
	// Attached volumes, and volumes by state.
	Attached           int
	Wrong, Waits, Fine int
	Found              []status.Finding
	More               int
}

// overview is what `fairlead status` shows.
func overview(s *server, _ *http.Request, now *reading) page {
	data := overviewData{View: now.status, Summary: now.status.Summary(), Notes: now.notes, Now: now.at, Program: s.program}
	for _, p := range now.status.Profiles {
		shown := overviewProfile{ProfileView: p, Found: p.Findings(s.program)}
		for _, v := range p.Volumes {
			if v.Attached {
				shown.Attached++
			}
			switch v.State {
			case datapath.Wrong:
				shown.Wrong++
			case datapath.Waiting:
				shown.Waits++
			default:
				shown.Fine++
			}
		}
		if len(shown.Found) > longest {
			shown.Found, shown.More = shown.Found[:longest], len(shown.Found)-longest
		}
		data.Parts = append(data.Parts, shown)
	}
	return page{title: "Overview", menu: "/", live: "overview", data: data}
}

// rank orders states, the worst last.
func rank(s datapath.State) int {
	switch s {
	case datapath.Wrong:
		return 2
	case datapath.Waiting:
		return 1
	}
	return 0
}

// missing is a path without a view.
func missing(_ *server, r *http.Request, _ *reading) page {
	return notFound("", "No view has the address "+r.URL.Path+".")
}

func notFound(menu, text string) page {
	return page{code: http.StatusNotFound, title: "Not found", menu: menu, live: "missing", data: text}
}
