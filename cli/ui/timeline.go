package ui

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli"
)

// happening is one event of Fairlead.
type happening struct {
	At *time.Time
	// Object as Kind namespace/name, Reason in one word, and Text.
	Object, Reason, Text string
	Warning              bool
	// Count is how often it happened, until At.
	Count int
}

// reporter is the name by which Fairlead's controllers write events.
const reporter = "fairlead"

// events of Fairlead, the newest first. Kubernetes keeps them for an hour, unless the API server is configured otherwise.
func (s clusterSource) events() ([]happening, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	var list corev1.EventList
	if err := s.target.Live.List(ctx, &list, client.MatchingFields{"reportingComponent": reporter}); err != nil {
		return nil, cli.ExplainBy(fmt.Errorf("listing events: %w", err), roles)
	}
	all := []happening{}
	for i := range list.Items {
		if e := &list.Items[i]; e.ReportingController == reporter {
			all = append(all, happeningOf(e))
		}
	}
	slices.SortStableFunc(all, func(a, b happening) int { return b.At.Compare(*a.At) })
	return all, nil
}

func happeningOf(e *corev1.Event) happening {
	at, count := cmp.Or(e.EventTime.Time, e.FirstTimestamp.Time, e.CreationTimestamp.Time), 1
	if last := e.LastTimestamp.Time; last.After(at) {
		at, count = last, max(1, int(e.Count))
	}
	if s := e.Series; s != nil && s.LastObservedTime.After(at) {
		at, count = s.LastObservedTime.Time, int(s.Count)
	}
	name := strings.TrimPrefix(e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name, "/")
	return happening{At: &at, Object: e.InvolvedObject.Kind + " " + name, Reason: e.Reason, Text: e.Message, Warning: e.Type == corev1.EventTypeWarning, Count: count}
}

type timelineData struct {
	Problem string
	Events  pageOf[happening]
}

// timeline shows what Fairlead did and reported.
func timeline(_ *server, r *http.Request, now *reading) page {
	data := timelineData{}
	all, err := now.events()
	if err != nil {
		data.Problem = err.Error()
	}
	data.Events = paged(r, "events", all, func(e happening) []string { return []string{e.Object, e.Reason, e.Text} })
	return page{title: "Timeline", menu: "/timeline", head: "timeline-head", live: "timeline", data: data}
}
