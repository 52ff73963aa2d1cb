package ui

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/fairlead-io/fairlead/cli/status"
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

// picture is the data path of a volume, in columns that the browser lays out: workloads, clients on their nodes,
// the Service, the server.
type picture struct {
	Columns [][]box
	// Description of the picture in words, for screen readers.
	Description string
	// networks in the order of the path; the cluster network is the first.
	networks []string
}

// box is one object, with lines of text. The first is strong.
type box struct {
	Kind  string
	Texts []string
	State datapath.State
	// Color is the number of the network; -1 for objects without one.
	Color int
}

const (
	// mostClients and mostTexts are shown; the table below the picture has all.
	mostClients, mostTexts = 8, 6
	// colors are the networks with a color of their own. The networks beyond share the last one.
	colors = 5
)

// draw puts the hops of a path into columns.
func draw(v datapath.Path) picture {
	p := picture{networks: []string{""}, Description: describe(v)}
	workloads := box{Kind: "Workloads", Texts: listOf(v.Workloads, "no workload"), State: datapath.OK, Color: -1}
	service := box{Kind: "Service", State: datapath.OK, Color: -1}
	var clients, servers []box
	for _, h := range v.Hops {
		switch h.Kind {
		case datapath.Workload: // its name is in the list
			workloads.State = datapath.Worse(workloads.State, h.State)
		case datapath.Client:
			clients = append(clients, p.box("Client on the node", h, h.Node))
		case datapath.Server:
			servers = append(servers, p.box("Server", h, cmp.Or(h.Name, "none yet"), "on node "+cmp.Or(h.Node, "-")))
		case datapath.Service:
			b := p.box(service.Kind, h, cmp.Or(h.Name, "none yet"))
			service.Texts, service.Color, service.State = b.Texts, b.Color, datapath.Worse(service.State, h.State)
		case datapath.Addresses:
			service.Texts = append(service.Texts, listOf(h.Addresses, "no published address")...)
			service.State = datapath.Worse(service.State, h.State)
		case datapath.Endpoint: // the name of the Service, as clients have it
			service.State = datapath.Worse(service.State, h.State)
		}
	}
	if hidden := len(clients) - mostClients; hidden > 0 {
		// The worst stay.
		slices.SortStableFunc(clients, func(a, b box) int { return b.State.Severity() - a.State.Severity() })
		clients = append(clients[:mostClients], box{Kind: "More clients", Texts: []string{fmt.Sprintf("and %d more nodes", hidden)}, Color: -1})
	}
	p.add(workloads)
	p.add(clients...)
	if len(service.Texts) > 0 {
		p.add(service)
	}
	p.add(servers...)
	return p
}

func (p *picture) box(kind string, h datapath.Hop, texts ...string) box {
	color := slices.Index(p.networks, h.Network)
	if color < 0 {
		color = len(p.networks)
		p.networks = append(p.networks, h.Network)
	}
	return box{kind, slices.Concat(texts, []string{status.NetworkName(h.Network)}, h.Addresses), h.State, min(color, colors-1)}
}

// add adds a column, unless it is empty.
func (p *picture) add(boxes ...box) {
	for i, b := range boxes {
		if hidden := len(b.Texts) - mostTexts + 1; hidden > 1 {
			boxes[i].Texts = append(b.Texts[:mostTexts-1:mostTexts-1], fmt.Sprintf("and %d more", hidden))
		}
	}
	if len(boxes) > 0 {
		p.Columns = append(p.Columns, boxes)
	}
}

func describe(v datapath.Path) string {
	parts := []string{"Workloads: " + strings.Join(listOf(v.Workloads, "none"), ", ")}
	for _, h := range v.Hops {
		part := string(h.Kind) + " " + h.Name
		if h.Node != "" {
			part += " on node " + h.Node
		}
		if h.Kind != datapath.Endpoint && h.Kind != datapath.Workload {
			part += ", " + status.NetworkName(h.Network)
		}
		parts = append(parts, part+": "+string(h.State))
	}
	return strings.Join(parts, "; ")
}

func listOf(list []string, none string) []string {
	if len(list) == 0 {
		return []string{none}
	}
	return list
}
