package ui

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/internal/cli/status"
	"github.com/fairlead-io/fairlead/internal/datapath"
)

var states = []string{string(datapath.Wrong), string(datapath.Waiting), string(datapath.OK)}

type volumesData struct {
	pageOf[datapath.Path]
	States []string
}

// volumes lists RWX volumes, as `fairlead volumes` does, the worst first.
func volumes(_ *server, r *http.Request, now *reading) page {
	all := now.volumes()
	if wanted := r.URL.Query().Get("state"); slices.Contains(states, wanted) {
		all = slices.DeleteFunc(all, func(v datapath.Path) bool { return string(v.State) != wanted })
	}
	list := paged(r, "RWX volumes", all, func(v datapath.Path) []string {
		texts := []string{v.Volume, status.NetworkOf(v), status.NetworkName(v.Wanted)}
		return slices.Concat(texts, v.Nodes, v.Workloads, v.Server)
	})
	return page{title: "Volumes", menu: "/volumes", head: "volumes-head", live: "volumes", data: volumesData{list, states}}
}

type volumeData struct {
	datapath.Path
	Picture picture
}

// volume follows one RWX volume, as `fairlead status volume` does.
func volume(_ *server, r *http.Request, now *reading) page {
	name := parameter(r, "volume")
	v, err := now.status.Find(name)
	if err != nil {
		return notFound("/volumes", err.Error())
	}
	return page{title: "Volume " + name, menu: "/volumes", live: "volume", data: volumeData{v, draw(v)}}
}

// parameter of the path. chi leaves it escaped if the path has escaped characters.
func parameter(r *http.Request, name string) string {
	text := chi.URLParam(r, name)
	if r.URL.RawPath == "" {
		return text
	}
	if plain, err := url.PathUnescape(text); err == nil {
		return plain
	}
	return text
}
