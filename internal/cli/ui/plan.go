package ui

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cli/plan"
)

// planForm is what the user has typed.
type planForm struct {
	Profiles, Names      []string
	Profile, Name, Value string
	// Unset takes the value in Fairlead's own group away.
	Unset bool
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

func formOf(now *reading) planForm {
	f := planForm{Names: cli.SettingNames()}
	for _, p := range now.status.Profiles {
		f.Profiles = append(f.Profiles, p.Profile)
	}
	return f
}

// planned shows what a value would do, as `fairlead plan` does. It reads the cluster and changes nothing.
func planned(s *server, r *http.Request, now *reading) page {
	query, form := r.URL.Query(), formOf(now)
	form.Profile, form.Name, form.Value, form.Unset = query.Get("profile"), query.Get("name"), query.Get("value"), query.Has("unset")
	if form.Profile == "" && len(form.Profiles) > 0 {
		form.Profile = form.Profiles[0]
	}
	data, code := plannedData{Form: form}, 0
	view, err := s.plan(r.Context(), form)
	switch {
	case err == nil:
		data.HiddenWorks, data.HiddenBlockers, data.HiddenNodes = cut(&view.Works), cut(&view.Blockers), cut(&view.Nodes)
		view.Settings = view.Asked()
		data.Plan = &view
	case errors.Is(err, errForm), errors.Is(err, errNoProfile):
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
	return s.watch.source.plan(ctx, f.Profile, changes, s.watch.now())
}

// longest list on a view that is not paged.
const longest = 20

// cut shortens a list, and returns how many rows are hidden.
func cut[T any](list *[]T) int {
	hidden := max(0, len(*list)-longest)
	*list = slices.Clip((*list)[:len(*list)-hidden])
	return hidden
}
