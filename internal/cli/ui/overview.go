package ui

import (
	"net/http"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli/status"
)

type overviewData struct {
	status.View
	Parts   []overviewProfile
	Notes   []string
	Now     time.Time
	Program string
}

type overviewProfile struct {
	status.ProfileView
	Found []status.Finding
	More  int
}

// overview is what `fairlead status` shows.
func overview(s *server, _ *http.Request, now *reading) page {
	data := overviewData{View: now.status, Notes: now.notes, Now: now.at, Program: s.program}
	for _, p := range now.status.Profiles {
		shown := overviewProfile{ProfileView: p, Found: p.Findings(s.program)}
		shown.More = cut(&shown.Found)
		data.Parts = append(data.Parts, shown)
	}
	return page{title: "Overview", menu: "/", live: "overview", data: data}
}

// missing is a path without a view.
func missing(_ *server, r *http.Request, _ *reading) page {
	return notFound("", "No view has the address "+r.URL.Path+".")
}

func notFound(menu, text string) page {
	return page{code: http.StatusNotFound, title: "Not found", menu: menu, live: "missing", data: text}
}
