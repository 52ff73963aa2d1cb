package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/validators"
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

func nodeWith(ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func TestInstanceManagerFacts(t *testing.T) {
	running := func(change func(*longhorn.InstanceManagerStatus)) *longhorn.InstanceManager {
		return manager("im-1", "node-1", "v1", func(m *longhorn.InstanceManager) {
			m.Status.CurrentState = "running"
			change(&m.Status)
		})
	}
	inUse := running(func(s *longhorn.InstanceManagerStatus) { s.InstanceEngines = processes("running", "pvc-a-e-0") })
	leaving := inUse.DeepCopy()
	leaving.DeletionTimestamp, leaving.Finalizers = &metav1.Time{Time: metav1.Now().Time}, []string{"longhorn.io"}
	failed := inUse.DeepCopy()
	failed.Status.CurrentState = "error"
	ready := nodeWith(corev1.ConditionTrue)
	for name, test := range map[string]struct {
		objects []client.Object
		want    validators.InstanceManagerFacts
		reads   int
	}{
		"engine of an attached volume": {
			objects: []client.Object{inUse, ready, volumeIn("attached", "pvc-a")},
			want:    validators.InstanceManagerFacts{Running: true, NodeReady: true, Instance: "pvc-a-e-0", Volume: "pvc-a"}, reads: 3,
		},
		"replica that starts, of a volume that is being attached": {
			objects: []client.Object{running(func(s *longhorn.InstanceManagerStatus) {
				s.InstanceReplicas = processes("starting", "a-e-b-r-1a2b3c4d")
			}), ready, volumeIn("attaching", "a-e-b")},
			want: validators.InstanceManagerFacts{Running: true, NodeReady: true, Instance: "a-e-b-r-1a2b3c4d", Volume: "a-e-b"}, reads: 3,
		},
		"frontend": {
			objects: []client.Object{running(func(s *longhorn.InstanceManagerStatus) {
				s.InstanceEngineFrontends = processes("running", "pvc-a-ef-0")
			}), ready, volumeIn("attached", "pvc-a")},
			want: validators.InstanceManagerFacts{Running: true, NodeReady: true, Instance: "pvc-a-ef-0", Volume: "pvc-a"}, reads: 3,
		},
		"the second volume is attached": {
			objects: []client.Object{running(func(s *longhorn.InstanceManagerStatus) {
				s.InstanceReplicas = processes("running", "pvc-a-r-1", "pvc-a-r-2", "pvc-b-r-1", "pvc-c-r-1")
			}), ready, volumeIn("detached", "pvc-a"), volumeIn("attached", "pvc-b"), volumeIn("attached", "pvc-c")},
			want: validators.InstanceManagerFacts{Running: true, NodeReady: true, Instance: "pvc-b-r-1", Volume: "pvc-b"}, reads: 4,
		},
		"left over of a volume that is gone, or has no name": {
			objects: []client.Object{running(func(s *longhorn.InstanceManagerStatus) {
				s.InstanceReplicas = processes("running", "pvc-a-r-1", "r-1", "x")
			}), ready},
			want: validators.InstanceManagerFacts{Running: true, NodeReady: true}, reads: 3,
		},
		"stopped": {
			objects: []client.Object{running(func(s *longhorn.InstanceManagerStatus) { s.InstanceReplicas = processes("stopped", "pvc-a-r-1") }), ready, volumeIn("attached", "pvc-a")},
			want:    validators.InstanceManagerFacts{Running: true, NodeReady: true}, reads: 2,
		},
		"node not Ready":         {objects: []client.Object{inUse, nodeWith(corev1.ConditionUnknown), volumeIn("attached", "pvc-a")}, want: validators.InstanceManagerFacts{Running: true}, reads: 2},
		"node gone":              {objects: []client.Object{inUse, volumeIn("attached", "pvc-a")}, want: validators.InstanceManagerFacts{Running: true}, reads: 2},
		"manager gone":           {objects: []client.Object{ready, volumeIn("attached", "pvc-a")}, reads: 1},
		"manager being deleted":  {objects: []client.Object{leaving, ready, volumeIn("attached", "pvc-a")}, reads: 1},
		"manager in state error": {objects: []client.Object{failed, ready, volumeIn("attached", "pvc-a")}, reads: 1},
	} {
		t.Run(name, func(t *testing.T) {
			reads := 0
			got, err := readerCounting(t, &reads, test.objects...).InstanceManagerFacts(t.Context(), "im-1", "node-1")
			if err != nil || got != test.want {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
			if reads != test.reads {
				t.Errorf("%d reads, want %d", reads, test.reads)
			}
		})
	}
}

// readerCounting fails at lists: a deletion waits for what is read here.
func readerCounting(t *testing.T, reads *int, objects ...client.Object) *Reader {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, o, options...)
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			return fmt.Errorf("listing %T: %w", list, errors.ErrUnsupported)
		},
	}).Build()
	return NewReader(storage.Longhorn(), c, c)
}
