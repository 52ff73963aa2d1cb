package ui

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/fences"
	"github.com/fairlead-io/fairlead/cli/nfs"
	"github.com/fairlead-io/fairlead/cli/plan"
	"github.com/fairlead-io/fairlead/cli/status"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

type overviewData struct {
	status.View
	Part    *overviewPart // of Longhorn
	Notes   []string
	Program string
}

type overviewPart struct {
	status.LonghornView
	Found []status.Finding
	More  int
}

// overview is what `fairlead status` shows.
func overview(s *server, _ *http.Request, now *reading) page {
	data := overviewData{View: now.status, Notes: now.notes, Program: s.program}
	if l := now.status.Longhorn; l != nil {
		data.Part = &overviewPart{LonghornView: *l, Found: l.Findings(s.program)}
		data.Part.More = cut(&data.Part.Found)
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

type rolloutsData struct {
	Rollout *rolloutData // of Longhorn
	Windows *status.Windows
	// Problem is why the order of nodes is not known.
	Problem string
}

type rolloutData struct {
	status.LonghornView
	Grid grid
	// Order in which to drain nodes; Hidden nodes are beyond the first ones.
	Order  []plan.Node
	Hidden int
}

// rollouts shows how far the network for RWX volumes and each setting are rolled out, and which node to drain next.
func rollouts(_ *server, _ *http.Request, now *reading) page {
	data := rolloutsData{Windows: now.status.Windows}
	if l := now.status.Longhorn; l != nil {
		shown := rolloutData{LonghornView: *l, Grid: gridOf(l.Volumes)}
		if phase := rollout.Phase(l.Network.Phase); slices.Contains(rollout.Phases, phase) && phase != rollout.PhaseApplied {
			order, err := now.order()
			if err != nil {
				data.Problem = err.Error()
			}
			shown.Order = order
			shown.Hidden = cut(&shown.Order)
		}
		data.Rollout = &shown
	}
	return page{title: "Roll-outs", menu: "/rollouts", live: "rollouts", data: data}
}

// allFences lists NodeFences, as `fairlead fences` does, the urgent ones first.
func allFences(_ *server, r *http.Request, now *reading) page {
	list := paged(r, "nodes", now.fences, func(v fences.View) []string {
		return []string{v.Node, v.Record, v.Phase, v.Reason, v.WaitsFor}
	})
	return page{title: "Fences", menu: "/fences", head: "fences-head", live: "fences", data: list}
}

type fenceData struct {
	Node     string
	Machines []fences.View
}

// fence shows one node, as `fairlead fences NODE` does: each machine that has or had the name.
func fence(_ *server, r *http.Request, now *reading) page {
	data := fenceData{Node: parameter(r, "node")}
	var known []string
	for _, v := range now.fences {
		known = append(known, v.Node)
		if v.Node == data.Node {
			data.Machines = append(data.Machines, v)
		}
	}
	if len(data.Machines) == 0 {
		return notFound("/fences", fmt.Sprintf("No NodeFence is of node %q%s", data.Node, cli.DidYouMean(data.Node, known)))
	}
	return page{title: "Node " + data.Node, menu: "/fences", live: "fence", data: data}
}

type serviceData struct {
	nfs.View
	// Servers are the first backends; Hidden is the number of the others.
	Servers []nfs.Backend
	Hidden  int
	// Busiest is the number of nodes on the server that has most.
	Busiest int
	Nodes   pageOf[nfs.Node]
}

func serviceOf(v nfs.View) serviceData {
	data := serviceData{View: v, Servers: v.Backends}
	for _, b := range v.Backends {
		data.Busiest = max(data.Busiest, b.Nodes)
	}
	return data
}

// services lists NFSServices with bars of nodes per server, as `fairlead nfs` does.
func services(_ *server, r *http.Request, now *reading) page {
	var all []serviceData
	for _, v := range now.services {
		shown := serviceOf(v)
		shown.Hidden = cut(&shown.Servers)
		all = append(all, shown)
	}
	list := paged(r, "NFS services", all, func(s serviceData) []string { return []string{s.Service, s.Exposure, s.Address} })
	return page{title: "NFS services", menu: "/nfs", head: "services-head", live: "services", data: list}
}

// service shows one NFSService with the nodes on its servers, as `fairlead nfs NAMESPACE/NAME` does.
func service(_ *server, r *http.Request, now *reading) page {
	name := parameter(r, "namespace") + "/" + parameter(r, "name")
	var known []string
	for _, v := range now.services {
		if v.Service == name {
			data := serviceOf(v)
			data.Nodes = paged(r, "nodes", v.Nodes, func(n nfs.Node) []string { return []string{n.Node, n.Zone, n.Backend, n.Address} })
			return page{title: "NFS service " + name, menu: "/nfs", head: "service-head", live: "service", data: data}
		}
		known = append(known, v.Service)
	}
	return notFound("/nfs", fmt.Sprintf("No NFSService has the name %q%s", name, cli.DidYouMean(name, known)))
}
