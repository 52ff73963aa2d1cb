package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
)

// Load is what became of requests that were sent one after another by several senders.
type Load struct {
	// Sent counts requests; Lost got no answer (a refused or broken connection), Failed an answer that is no decision.
	Sent, Lost, Failed int
	// Median and Slowest are times of decided requests.
	Median, Slowest time.Duration
	// Example of a lost or failed request.
	Example error
}

// OK: nothing was lost, and nothing failed.
func (l Load) OK() bool { return l.Lost+l.Failed == 0 && l.Sent > 0 }

func (l Load) String() string {
	text := fmt.Sprintf("%d requests, %d lost, %d failed; median %s, slowest %s", l.Sent, l.Lost, l.Failed, l.Median.Round(10*time.Microsecond), l.Slowest.Round(10*time.Microsecond))
	if l.Example != nil {
		text += fmt.Sprintf(" (for example: %v)", l.Example)
	}
	return text
}

// During sends requests while something happens: a rolling restart, the rotation of a certificate, or nothing. It ends
// with what happens. Senders use connections as the API server does: kept open, and a new one when the webhook closes it.
func During(ctx context.Context, w Webhook, senders int, happens func(context.Context) error) (Load, error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	var mutex sync.Mutex
	var load Load
	var took []time.Duration
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for n := s; sending.Err() == nil; n += senders {
				started := time.Now()
				response, err := w.ask(ctx, func(r *admissionv1.AdmissionRequest) { r.UID = uid(n) })
				if err == nil && response.UID != uid(n) {
					err = fmt.Errorf("%w: uid %s instead of %s", errStatus, response.UID, uid(n))
				}
				mutex.Lock()
				load.Sent++
				switch {
				case err == nil:
					took = append(took, time.Since(started))
				case errors.Is(err, errStatus), errors.Is(err, errResponse):
					load.Failed++
					load.Example = err
				default:
					load.Lost++
					load.Example = err
				}
				mutex.Unlock()
			}
		})
	}
	err := happens(ctx)
	stop()
	all.Wait()
	if len(took) > 0 {
		slices.Sort(took)
		load.Median, load.Slowest = took[len(took)/2], took[len(took)-1]
	}
	return load, err
}
