package cephclients

import (
	"context"
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// While Ceph or the server does not answer, each request takes up to 17 s, and other nodes wait.
func TestCephWithoutAnswerIsAskedSeldom(t *testing.T) {
	silent := cephcli.Found{Problem: "timed out"}
	for name, test := range map[string]struct {
		took   time.Duration
		answer cephcli.Answer
		err    error
		asked  int
	}{
		"an answer":               {time.Second, cephcli.Answer{}, nil, 4},
		"a slow answer":           {9 * time.Second, cephcli.Answer{Servers: silent, Clients: map[string]cephcli.Found{"a": silent, "b": {}}}, nil, 4},
		"refused at once":         {0, cephcli.Answer{}, errors.New("refused"), 4},
		"no answer of the server": {askTimeout, cephcli.Answer{}, context.DeadlineExceeded, 2},
		"no answer of Ceph":       {long, cephcli.Answer{Servers: silent, Clients: map[string]cephcli.Found{"a": silent}}, nil, 2},
	} {
		clock, asked := clocktesting.NewFakeClock(testkit.Noon), 0
		ask := WithPause(func(context.Context, cephcli.Request) (cephcli.Answer, error) {
			asked++
			clock.Step(test.took)
			return test.answer, test.err
		}, clock)
		for i, wait := range []time.Duration{0, time.Second, pause - 2*time.Second, time.Second} {
			clock.Step(wait)
			before := asked
			_, err := ask(t.Context(), cephcli.Request{})
			must.True(t, asked == before && err != nil || errors.Is(err, test.err), "%s, %d: got %v", name, i, err)
		}
		must.Equal(t, asked, test.asked, "%s", name)
	}
}
