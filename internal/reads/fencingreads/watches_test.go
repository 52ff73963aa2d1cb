package fencingreads_test

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/apiserver"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// slow is a client whose watch of Nodes is behind.
type slow struct{ client.WithWatch }

func (c slow) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	w, err := c.WithWatch.Watch(ctx, list, opts...)
	if _, nodes := list.(*corev1.NodeList); !nodes || err != nil {
		return w, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		time.Sleep(50 * time.Millisecond)
		return event, true
	}), nil
}

// A taint counts as soon as it is written, even for a volume with 1,000 holders, which are not read one by one.
func TestTaintCountsAtOnceForManyHolders(t *testing.T) {
	must.HaveTime(t)
	const nodes = 1000
	scheme := testkit.Value[*runtime.Scheme](t)(reads.NewScheme())
	server, err := apiserver.New(scheme, apiserver.Size{Nodes: nodes, VolumesEach: 1, Holders: nodes})
	must.Do(t, err)
	listening := httptest.NewServer(server)
	api, err := client.NewWithWatch(&rest.Config{Host: listening.URL, QPS: -1}, client.Options{Scheme: scheme})
	must.Do(t, err)
	held := fencingreads.NewHoldings(slow{api}, func(driver string) bool { return driver == apiserver.CephDriver })
	reader := fencingreads.NewHolderReader(api, held)
	must.True(t, !held.Synced(), "synced before anything was listed")
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- held.Start(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		listening.CloseClientConnections()
		listening.Close()
	}()
	for !held.Synced() {
		time.Sleep(10 * time.Millisecond)
	}
	shared := fence.Volume{Name: apiserver.SharedVolume, Driver: apiserver.CephDriver, Handle: apiserver.SharedVolume, AccessModes: []string{"ReadWriteMany"}}
	var want []string
	for i := range 15 {
		name := apiserver.NodeName(i)
		server.Change("nodes", name, func(o runtime.Object) runtime.Object {
			node := o.(*corev1.Node).DeepCopy()
			node.Spec.Taints = []corev1.Taint{{Key: fence.OutOfServiceTaint}}
			return node
		})
		want = append(want, name)
		holders, err := reader.Holders(t.Context(), shared)
		must.Do(t, err)
		var got []string
		for _, h := range holders {
			must.True(t, h.Node.OutOfService, "%s was read, and is not tainted", h.Node.Name)
			got = append(got, h.Node.Name)
		}
		must.Equal(t, got, want)
	}
	// A node that is not Ready also holds its volumes with one writer.
	shared.AccessModes = []string{"ReadWriteOnce"}
	if holders, err := reader.Holders(t.Context(), shared); err != nil || len(holders) != nodes {
		t.Errorf("got %d holders, %v", len(holders), err)
	}
}
