package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// OutOfLine is an object that differs from the record, with what its correction waits for.
type OutOfLine struct {
	Kind    catalog.BlockerKind
	Name    string
	Message string
}

// FindOutOfLine lists objects that were created while the webhooks were down, changed by another
// writer, or belong to a volume that was attached before the change. The roll-out corrects clients
// and Services, package controllers/volumes corrects server pods.
func FindOutOfLine(r Rollout) []OutOfLine {
	r = r.indexed()
	var found []OutOfLine
	for _, c := range r.Clients {
		if c.Terminating || r.DaemonSet.OptOut {
			continue
		}
		if !c.IsOn(r.Record.Clients) {
			found = append(found, OutOfLine{catalog.BlockedByClient, c.Pod, fmt.Sprintf(
				"asks for %s instead of %s; restarted when no RWX volume is attached on %s", describe(c.Network), describe(r.Record.Clients), c.Node)})
		} else if lacks := difference(r.Record.VolumeClients, c.VolumeNetworks); len(lacks) > 0 {
			found = append(found, OutOfLine{catalog.BlockedByClient, c.Pod, fmt.Sprintf(
				"does not ask for %s; restarted when no RWX volume is attached on %s", networkNames(lacks), c.Node)})
		} else if r.startedTooSoon(c) {
			found = append(found, OutOfLine{catalog.BlockedByClient, c.Pod, fmt.Sprintf(
				"is Ready and has no address on %s: it started before Multus; restarted when no RWX volume is attached on %s", r.Record.Clients, c.Node)})
		}
	}
	services := map[string]rwx.Service{}
	for _, s := range r.Services {
		services[s.Volume] = s
		is, due := s.Placement(r.Record.Clients), r.Due(s.Volume)
		switch {
		case s.Unpublished(r.Record.Clients):
			found = append(found, OutOfLine{catalog.BlockedByService, s.Name, "is headless, and no network is applied: nothing is published for it; " + r.waitsFor(s)})
		case is.Network != due.Network:
			found = append(found, OutOfLine{catalog.BlockedByService, s.Name, fmt.Sprintf(
				"still uses %s instead of %s; %s", describe(is.Network), describe(due.Network), r.waitsFor(s))})
		case is != due:
			found = append(found, OutOfLine{catalog.BlockedByService, s.Name, "still has other addresses than its volume asks for; " + r.waitsFor(s)})
		}
	}
	for _, server := range r.Servers {
		service, known := services[server.Volume]
		if want := service.Network(r.Record.Clients); known && !server.IsOn(want) && !server.Terminating {
			waits := "restarted when no started workload uses volume " + server.Volume
			if want.IsZero() { // clients reach the server by the cluster IP
				waits = "left as it is until the volume is detached"
			}
			found = append(found, OutOfLine{catalog.BlockedByServer, server.Pod, fmt.Sprintf(
				"asks for %s, but its Service uses %s; %s", describe(server.Network), describe(want), waits)})
		}
	}
	slices.SortFunc(found, func(a, b OutOfLine) int { return strings.Compare(string(a.Kind)+a.Name, string(b.Kind)+b.Name) })
	return found
}

// waitsFor says what the recreation of a Service waits for.
func (r Rollout) waitsFor(s rwx.Service) string {
	switch {
	case s.Fixed:
		return "left alone, since it is not of type ClusterIP"
	case s.OptOut:
		return "left alone, since it opts out by " + rwx.OptOutAnnotation
	}
	if v, attached := r.lookup().attached[s.Volume]; attached {
		return "recreated when the volume is detached: " + catalog.Detail(catalog.SharedVolumeGate([]rwx.Volume{*v}))
	}
	if r.lookup().served[s.Volume] {
		return "recreated when its server pod is gone"
	}
	return "recreated when the roll-out comes to it"
}

func describe(a multus.Attachment) string {
	if a.IsZero() {
		return "the cluster network"
	}
	return a.String()
}
