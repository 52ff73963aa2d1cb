package node

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The GKE driver keeps its lock while a server hangs, and every retry is Aborted.
func TestHungMountBlocksOnlyItsTarget(t *testing.T) {
	b := newBed(t)
	entered, release := make(chan struct{}, 2), make(chan struct{})
	b.system.OnMount = func(_ context.Context, _, target string, _ []string) error {
		if target == b.target("mount") {
			entered <- struct{}{}
			<-release // does not heed its context: a process in the kernel
		}
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() {
		_, err := b.NodePublishVolume(ctx, b.request())
		result <- err
	}()
	<-entered
	b.fails(b.publish(), codes.Aborted, "in progress since")
	b.fails(b.unpublish(), codes.Aborted, "mounting of")
	b.must(b.publish(func(r *csi.NodePublishVolumeRequest) { r.TargetPath = b.target("other") }))
	cancel()
	b.fails(<-result, codes.DeadlineExceeded, "goes on")
	b.fails(b.unpublish(), codes.Aborted, "mounting of")
	close(release)
	for status.Code(b.unpublish()) == codes.Aborted { // until the operation has noticed
		time.Sleep(time.Millisecond)
	}
	b.must(b.publish())
}

func TestPanicReleasesItsTarget(t *testing.T) {
	b := newBed(t)
	b.system.OnMount = func(context.Context, string, string, []string) error { panic("defect") }
	for range 2 {
		b.fails(b.publish(), codes.Internal, "defect")
	}
	b.system.OnMount = nil
	b.must(b.publish())
}

func TestOneOperationRunsPerTarget(t *testing.T) {
	b := newBed(t)
	var running, most atomic.Int32
	b.system.OnMount = func(context.Context, string, string, []string) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		return nil
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				for _, err := range []error{b.publish(), b.unpublish()} {
					if c := status.Code(err); c != codes.OK && c != codes.Aborted {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	must.Equal(t, most.Load(), 1, "at a time")
}
