package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailedWaitHasLastError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := await(t.Context(), "the moon", time.Minute, func(context.Context) error { return errors.New("it is new moon") })
		for _, part := range []string{"the moon", "1m0s", "it is new moon"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("error %v does not say %q", err, part)
			}
		}
	})
}

func TestWaitEndsWithCauseOfContext(t *testing.T) {
	cause := errors.New("etcd died")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if err := await(ctx, "anything", time.Minute, func(context.Context) error { return errNotYet }); !errors.Is(err, cause) {
		t.Errorf("error is %v, want its cause", err)
	}
}
