package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/plan"
	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

type settingsData struct {
	// Longhorn is nil if Fairlead does nothing for Longhorn.
	Longhorn *status.LonghornView
	Form     planForm
}

// settings of the danger zone, as `fairlead settings` shows them, those that are not applied first.
func settings(_ *server, _ *http.Request, now *reading) page {
	return page{title: "Settings", menu: "/settings", head: "settings-head", live: "settings", data: settingsData{now.status.Longhorn, formOf()}}
}

type settingData struct {
	v1.Setting
	Progress []bar
	// Hidden blockers are beyond the first ones of the list.
	Hidden int
}

// setting shows one setting, as `fairlead settings NAME` does.
func setting(_ *server, r *http.Request, now *reading) page {
	name := parameter(r, "setting")
	var known []string
	if l := now.status.Longhorn; l != nil {
		for _, s := range l.Settings() {
			known = append(known, s.Name)
			if s.Name != name {
				continue
			}
			data := settingData{Setting: s, Progress: progressOf(*l, name)}
			data.Hidden = max(0, len(s.Blockers)-longest)
			data.Blockers = s.Blockers[:len(s.Blockers)-data.Hidden]
			return page{title: "Setting " + name, menu: "/settings", head: "setting-head", live: "setting", data: data}
		}
	}
	return notFound("/settings", fmt.Sprintf("No setting of the danger zone has the name %q%s", name, cli.DidYouMean(name, known)))
}

func progressOf(p status.LonghornView, setting string) []bar {
	var bars []bar
	for _, c := range p.Progress {
		if c.Setting == setting {
			bars = append(bars, bar{c.Kind, c.Updated, c.Total})
		}
	}
	return bars
}

// planForm is what the user has typed.
type planForm struct {
	Names       []string
	Name, Value string
	// Unset takes the value in Fairlead's own group away.
	Unset bool
	// Values are suggested for the setting.
	Values []string
}

type plannedData struct {
	Form planForm
	// Problem with the form, or the refusal of the webhook.
	Problem string
	Refused bool
	Plan    *plan.View
	// Hidden works, blockers and nodes are beyond the first ones of the lists.
	HiddenWorks, HiddenBlockers, HiddenNodes int
}

func formOf() planForm { return planForm{Names: catalog.Names()} }

// planned shows what a value would do, as `fairlead plan` does. It reads the cluster and changes nothing.
func planned(s *server, r *http.Request, _ *reading) page {
	query, form := r.URL.Query(), formOf()
	form.Name, form.Value, form.Unset = query.Get("name"), query.Get("value"), query.Has("unset")
	form.Values = s.watch.source.suggest(r.Context(), form.Name)
	data, code := plannedData{Form: form}, 0
	if form.Name == "" { // nothing was typed yet
		return page{title: "Plan", menu: "/settings", head: "planned-head", live: "planned", data: data, still: true}
	}
	view, err := s.plan(r.Context(), form)
	switch {
	case err == nil:
		data.HiddenWorks, data.HiddenBlockers, data.HiddenNodes = cut(&view.Works), cut(&view.Blockers), cut(&view.Nodes)
		view.Settings = view.Asked()
		data.Plan = &view
	case errors.Is(err, errForm), errors.Is(err, cli.ErrNoLonghorn):
		data.Problem, code = err.Error(), http.StatusBadRequest
	case errors.Is(err, plan.ErrRefused):
		data.Problem, data.Refused = err.Error(), true
	default:
		data.Problem, code = "The cluster could not be read: "+err.Error(), http.StatusBadGateway
	}
	return page{code: code, title: "Plan", menu: "/settings", head: "planned-head", live: "planned", data: data, still: true}
}

// errForm is the error of a name or a value that can't be planned.
var errForm = errors.New("this can't be planned")

func (s *server) plan(ctx context.Context, f planForm) (plan.View, error) {
	changes := plan.Changes{}
	err := changes.Set(f.Name, f.Value)
	if f.Unset {
		changes = plan.Changes{}
		err = changes.Unset(f.Name)
	}
	if err != nil {
		return plan.View{}, errors.Join(errForm, err)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return s.watch.source.plan(ctx, changes, s.watch.now())
}

// longest list on a view that is not paged.
const longest = 20

// cut shortens a list, and returns how many rows are hidden.
func cut[T any](list *[]T) int {
	hidden := max(0, len(*list)-longest)
	*list = slices.Clip((*list)[:len(*list)-hidden])
	return hidden
}
