package cephclients

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

const (
	// pause after a request that took long and brought nothing: such requests take up to askTimeout, and hold up the look
	// at other nodes.
	pause = time.Minute
	// long is how long the server waits for one command.
	long = 5 * time.Second
)

// WithPause asks nothing for a while after a request that took long and brought nothing: the next requests fail at once.
func WithPause(ask func(context.Context, cephcli.Request) (cephcli.Answer, error), c clock.PassiveClock) func(context.Context, cephcli.Request) (cephcli.Answer, error) {
	var last atomic.Pointer[time.Time]
	return func(ctx context.Context, request cephcli.Request) (cephcli.Answer, error) {
		began := c.Now()
		if at := last.Load(); at != nil && began.Sub(*at) < pause {
			return cephcli.Answer{}, fmt.Errorf("no answer at %s; the next request is after %s", at.UTC().Format(time.RFC3339), pause)
		}
		answer, err := ask(ctx, request)
		if ended := c.Now(); ended.Sub(began) >= long && (err != nil || isEmpty(answer)) {
			last.Store(&ended)
		}
		return answer, err
	}
}

// isEmpty reports whether Ceph has answered nothing.
func isEmpty(answer cephcli.Answer) bool {
	for _, found := range answer.Clients {
		if found.Problem == "" {
			return false
		}
	}
	return answer.Servers.Problem != ""
}
