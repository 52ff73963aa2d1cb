package ui

import (
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/cli/nfs"
)

type servicesData struct {
	pageOf[serviceData]
}

type serviceData struct {
	nfs.View
	// Servers are the first backends; Hidden is the number of the others.
	Servers []nfs.Backend
	Hidden  int
	// Busiest is the number of nodes on the server that has most.
	Busiest int
	Nodes   pageOf[nfs.Node]
	Now     time.Time
}

func serviceOf(v nfs.View, now *reading) serviceData {
	data := serviceData{View: v, Servers: v.Backends, Now: now.at}
	for _, b := range v.Backends {
		data.Busiest = max(data.Busiest, b.Nodes)
	}
	return data
}

// services lists NFSServices with bars of nodes per server, as `fairlead nfs` does.
func services(_ *server, r *http.Request, now *reading) page {
	var all []serviceData
	for _, v := range now.services {
		shown := serviceOf(v, now)
		shown.Hidden = cut(&shown.Servers)
		all = append(all, shown)
	}
	list := paged(r, "NFS services", all, func(s serviceData) []string { return []string{s.Service, s.Exposure, s.Address} })
	return page{title: "NFS services", menu: "/nfs", head: "services-head", live: "services", data: servicesData{list}}
}

// service shows one NFSService with the nodes on its servers, as `fairlead nfs NAMESPACE/NAME` does.
func service(_ *server, r *http.Request, now *reading) page {
	name := parameter(r, "namespace") + "/" + parameter(r, "name")
	var known []string
	for _, v := range now.services {
		if v.Service == name {
			data := serviceOf(v, now)
			data.Nodes = paged(r, "nodes", v.Nodes, func(n nfs.Node) []string { return []string{n.Node, n.Zone, n.Backend, n.Address} })
			return page{title: "NFS service " + name, menu: "/nfs", head: "service-head", live: "service", data: data}
		}
		known = append(known, v.Service)
	}
	return notFound("/nfs", fmt.Sprintf("No NFSService has the name %q%s", name, cli.DidYouMean(name, known)))
}
