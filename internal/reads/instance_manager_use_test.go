package reads

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func processes(state string, names ...string) map[string]longhorn.InstanceProcess {
	all := map[string]longhorn.InstanceProcess{}
	for _, name := range names {
		all[name] = longhorn.InstanceProcess{Status: longhorn.InstanceProcessStatus{State: state}}
	}
	return all
}

func volumeIn(state, name string) *longhorn.Volume {
	return &longhorn.Volume{ObjectMeta: here(name), Status: longhorn.VolumeStatus{State: state}}
}

func TestInstanceManagerFacts(t *testing.T) {
	running := func(change func(*longhorn.InstanceManagerStatus)) *longhorn.InstanceManager {
		return manager("im-1", "node-1", "v1", func(m *longhorn.InstanceManager) {
			m.Status.CurrentState = "running"
			change(&m.Status)
		})
	}
	replicas := func(state string, names ...string) *longhorn.InstanceManager {
		return running(func(s *longhorn.InstanceManagerStatus) { s.InstanceReplicas = processes(state, names...) })
	}
	inUse := running(func(s *longhorn.InstanceManagerStatus) { s.InstanceEngines = processes("running", "pvc-a-e-0") })
	frontend := running(func(s *longhorn.InstanceManagerStatus) {
		s.InstanceEngineFrontends = processes("running", "pvc-a-ef-0")
	})
	shards := running(func(s *longhorn.InstanceManagerStatus) {
		s.InstanceShards, s.InstanceShardGroups = processes("running", "pvc-a-0"), processes("running", "pvc-b")
	})
	leaving, failed := inUse.DeepCopy(), inUse.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"longhorn.io"}
	failed.Status.CurrentState = "error"
	ready, notReady := objects.Node("node-1"), objects.Node("node-1", objects.Readiness(corev1.ConditionUnknown, time.Time{}))
	attached := volumeIn("attached", "pvc-a")
	uses := func(instance, volume string) planner.InstanceManagerFacts {
		return planner.InstanceManagerFacts{Running: true, NodeReady: true, Instance: instance, Volume: volume}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    planner.InstanceManagerFacts
		reads   int
	}{
		"engine of an attached volume":         {[]client.Object{inUse, ready, attached}, uses("pvc-a-e-0", "pvc-a"), 3},
		"replica starts while volume attaches": {[]client.Object{replicas("starting", "a-e-b-r-1a2b3c4d"), ready, volumeIn("attaching", "a-e-b")}, uses("a-e-b-r-1a2b3c4d", "a-e-b"), 3},
		"frontend":                             {[]client.Object{frontend, ready, attached}, uses("pvc-a-ef-0", "pvc-a"), 3},
		"shard of an attached volume":          {[]client.Object{shards, ready, attached, volumeIn("detached", "pvc-b")}, uses("pvc-a-0", "pvc-a"), 4},
		"shard group of an attached volume":    {[]client.Object{shards, ready, volumeIn("attached", "pvc-b")}, uses("pvc-b", "pvc-b"), 3},
		"shards of detached volumes":           {[]client.Object{shards, ready, volumeIn("detached", "pvc-a"), volumeIn("detached", "pvc-b")}, uses("", ""), 4},
		"the second volume is attached":        {[]client.Object{replicas("running", "pvc-a-r-1", "pvc-a-r-2", "pvc-b-r-1", "pvc-c-r-1"), ready, volumeIn("detached", "pvc-a"), volumeIn("attached", "pvc-b"), volumeIn("attached", "pvc-c")}, uses("pvc-b-r-1", "pvc-b"), 4},
		"replica without a volume":             {[]client.Object{replicas("running", "pvc-a-r-1", "r-1", "x"), ready}, uses("", ""), 3},
		"stopped":                              {[]client.Object{replicas("stopped", "pvc-a-r-1"), ready, attached}, uses("", ""), 2},
		"node not Ready":                       {[]client.Object{inUse, notReady, attached}, planner.InstanceManagerFacts{Running: true}, 2},
		"no node":                              {[]client.Object{inUse, attached}, planner.InstanceManagerFacts{Running: true}, 2},
		"no manager":                           {[]client.Object{ready, attached}, planner.InstanceManagerFacts{}, 1},
		"manager being deleted":                {[]client.Object{leaving, ready, attached}, planner.InstanceManagerFacts{}, 1},
		"manager in state error":               {[]client.Object{failed, ready, attached}, planner.InstanceManagerFacts{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			got, err := readerCounting(t, &reads, test.objects...).InstanceManagerFacts(t.Context(), "im-1", "node-1")
			must.Check(t, err == nil && got == test.want && reads == test.reads, "got  %+v, %v, %d reads\nwant %+v, %d reads", got, err, reads, test.want, test.reads)
		})
	}
}

// readerCounting fails on lists: a deletion waits for these reads.
func readerCounting(t *testing.T, reads *int, stored ...client.Object) *Reader {
	t.Helper()
	c := indexed(t, stored...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, o, options...)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return fmt.Errorf("listing %T: %w", list, errors.ErrUnsupported)
		},
	}).Build()
	return NewReader(objects.Longhorn, c, c)
}
