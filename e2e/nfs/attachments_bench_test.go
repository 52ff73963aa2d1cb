package nfs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const (
	benchNodes   = 100
	benchVolumes = 3 // of each node
	// wantPerSecond is the target for Fairlead.
	wantPerSecond = 50
)

// BenchmarkAttachments attaches three volumes to each of a hundred nodes at once, by Fairlead's attacher and by a stand-in
// for the GKE driver. It prints attachments per second, and their ratio.
func BenchmarkAttachments(b *testing.B) {
	for range b.N {
		c := shared(b)
		fairlead, err := c.attachRate(b.Context(), Driver, nil)
		must.Do(b, err)
		peer, err := c.attachRate(b.Context(), "stand-in.example.com", c.standIn)
		must.Do(b, err)
		b.ReportMetric(fairlead, "fairlead/s")
		b.ReportMetric(peer, "stand-in/s")
		b.ReportMetric(fairlead/peer, "ratio")
		if fairlead < wantPerSecond {
			b.Errorf("%.0f attachments per second; wanted are %d", fairlead, wantPerSecond)
		}
	}
}

// attachRate returns how many volumes are attached per second, from the first request to
// the last answer. attacher runs meanwhile, where it is not Fairlead.
func (c *Cluster) attachRate(ctx context.Context, driver string, attacher func(context.Context, string) error) (float64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers, err := c.servers(ctx, 10)
	if err != nil {
		return 0, err
	}
	service := ""
	if attacher == nil {
		service = "bench"
		if err := c.CreateService(ctx, NewService(service, nfs.PerNode, servers...)); err != nil {
			return 0, err
		}
	}
	var volumes []Volume
	var names []string
	for i := range benchVolumes {
		v := Volume{Name: fmt.Sprintf("bench-%d-%s", i, driver), Service: service, Driver: driver}
		if err := c.CreateVolume(ctx, v); err != nil {
			return 0, err
		}
		volumes, names = append(volumes, v), append(names, v.Name)
	}
	ended := make(chan error, 1)
	if attacher != nil {
		go func() { ended <- attacher(ctx, driver) }()
	}
	begun := time.Now()
	for _, v := range volumes {
		if err := c.Attach(ctx, v, c.State.Nodes[:benchNodes]...); err != nil {
			return 0, err
		}
	}
	for done := 0; done < benchNodes*benchVolumes; {
		done = 0
		for _, name := range names {
			a, err := c.Assignment(ctx, name)
			if err != nil {
				return 0, err
			}
			done += len(a.Addresses)
		}
		select {
		case err := <-ended:
			return 0, errors.Join(errors.New("the stand-in has ended"), err)
		case <-time.After(20 * time.Millisecond): // a list of 300 attachments takes longer
		}
	}
	rate := benchNodes * benchVolumes / time.Since(begun).Seconds()
	for _, v := range volumes {
		if err := c.Detach(ctx, v, c.State.Nodes[:benchNodes]...); err != nil {
			return 0, err
		}
	}
	return rate, nil
}

// standIn attaches as the GKE driver does: it holds its one lock while it writes the whole
// node, by a client of five requests a second and a burst of ten (lbcontroller.go:
// AssignIPToNode). Its ten workers, and the sidecar's own limit of five a second, which
// would slow it further, are left out: each attachment has a worker, and is written at once.
func (c *Cluster) standIn(ctx context.Context, driver string) error {
	limited := rest.CopyConfig(c.Config)
	limited.QPS, limited.Burst = 5, 10
	nodes, err := client.New(limited, client.Options{Scheme: c.Client.Scheme()})
	if err != nil {
		return err
	}
	watching, err := c.Client.Watch(ctx, &storagev1.VolumeAttachmentList{})
	if err != nil {
		return err
	}
	defer watching.Stop()
	var lock sync.Mutex
	counts, seen := map[string]int{}, map[string]bool{}
	for i := range 10 {
		counts[ServerAddress(i+1).String()] = 0
	}
	key := driver + "/assigned-ip"
	publish := func(name string) (string, error) {
		lock.Lock()
		defer lock.Unlock()
		var node corev1.Node
		if err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil { // from its informer
			return "", err
		}
		if address := node.Annotations[key]; address != "" {
			return address, nil
		}
		best, least := "", 1<<30
		for address, n := range counts {
			if n < least || n == least && rand.IntN(2) == 0 {
				best, least = address, n
			}
		}
		node.Annotations[key] = best
		if err := nodes.Update(ctx, &node); err != nil {
			return "", err
		}
		counts[best]++
		return best, nil
	}
	for event := range watching.ResultChan() {
		va, ok := event.Object.(*storagev1.VolumeAttachment)
		if !ok || va.Spec.Attacher != driver || seen[va.Name] {
			continue
		}
		seen[va.Name] = true
		go func() {
			var address string
			for ctx.Err() == nil {
				var err error
				if address, err = publish(va.Spec.NodeName); err == nil {
					break
				}
			}
			before := va.DeepCopy()
			va.Status.Attached, va.Status.AttachmentMetadata = true, map[string]string{key: address}
			_ = c.Client.Status().Patch(ctx, va, client.MergeFrom(before)) // a failure is seen: the attachment is missing
		}()
	}
	return ctx.Err()
}
