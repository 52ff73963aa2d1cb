package ui

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cli/fences"
)

type fencesData struct {
	pageOf[fences.View]
	Now time.Time
}

// allFences lists NodeFences, as `fairlead fences` does, the urgent ones first.
func allFences(_ *server, r *http.Request, now *reading) page {
	list := paged(r, "nodes", now.fences, func(v fences.View) []string {
		return []string{v.Node, v.Record, v.Phase, v.Reason, v.WaitsFor}
	})
	return page{title: "Fences", menu: "/fences", head: "fences-head", live: "fences", data: fencesData{list, now.at}}
}

type fenceData struct {
	Node     string
	Machines []fences.View
	Now      time.Time
}

// fence shows one node, as `fairlead fences NODE` does: each machine that has or had the name.
func fence(_ *server, r *http.Request, now *reading) page {
	data := fenceData{Node: parameter(r, "node"), Now: now.at}
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
