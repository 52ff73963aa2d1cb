package nfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// outWithin is the promise: failures × interval and one second from the death of a server
// to the slice that names another, and what a hung server's last probe takes.
func outWithin() time.Duration {
	return probeFailures*duration(probeInterval).Duration + duration(probeTimeout).Duration + time.Second
}

// A client that copies a file through mount, kube-proxy and node plugin does not notice
// that its server dies or hangs, but for a pause.
func TestCopySurvivesServer(t *testing.T) {
	c, ctx := shared(t), t.Context()
	node := c.State.Nodes[0]
	must.Do(t, c.startProxyOnce(ctx, node))
	plugin, err := c.StartPlugin(ctx, node)
	must.Do(t, err)
	t.Cleanup(func() {
		if err := plugin.Stop(); err != nil {
			t.Error(err)
		}
	})
	ends := map[string]struct{ end, undo func(*Server) error }{
		"killed": {(*Server).Kill, func(s *Server) error { return s.Start(ctx) }},
		"hangs":  {(*Server).Hang, (*Server).Resume},
	}
	for _, exposure := range []nfs.Exposure{nfs.Stable, nfs.PerNodeStable} {
		for name, server := range ends {
			t.Run(fmt.Sprintf("%s/%s", exposure, name), func(t *testing.T) {
				copyWhile(t, c, plugin, exposure, server.end, server.undo)
			})
		}
	}
}

func copyWhile(t *testing.T, c *Cluster, plugin *Plugin, exposure nfs.Exposure, end, undo func(*Server) error) {
	ctx := t.Context()
	service := fmt.Sprintf("copy-%d", time.Now().UnixNano())
	addresses, err := c.servers(ctx, 3)
	must.Do(t, err)
	must.Do(t, c.CreateService(ctx, NewService(service, exposure, addresses...)))
	must.Do(t, c.UseNodes(ctx, service, 1))
	must.Do(t, c.CreateVolume(ctx, Volume{Name: service, Service: service}))
	must.Do(t, c.CreateClients(ctx, service, service, 1))
	before, err := c.WaitAssigned(ctx, 1, service)
	must.Do(t, err)
	address := before.Addresses[plugin.node]
	// Longer than the test: the client does not give up a server on its own.
	path, err := c.Publish(ctx, plugin, service, "pod-"+service, "timeo=6000")
	must.Do(t, err)
	backend, err := c.backendOf(ctx, service, address)
	must.Do(t, err)
	victim := c.running[backend]
	if victim == nil {
		t.Fatalf("%s points to %s, which is no server of this test", address, backend)
	}

	var published time.Duration
	measured := lateness(t)
	died := make(chan time.Time, 1)
	moved := make(chan error, 1)
	go func() {
		at := <-died
		err := c.waitPublished(ctx, service, address, backend)
		published = time.Since(at)
		moved <- err
	}()
	hash, longest, err := write(filepath.Join(path, "copy-"+service), 40, func() error {
		defer func() { died <- time.Now() }()
		return end(victim)
	})
	must.Do(t, err)
	must.Do(t, <-moved)
	if err := sameFile(filepath.Join(c.Share, "copy-"+service), hash); err != nil {
		t.Error(err)
	}
	t.Logf("published %s after the end of the server; the longest write took %s", published.Round(time.Millisecond), longest.Round(time.Millisecond))
	late := measured()
	switch {
	case published > outWithin() && late <= quiet:
		t.Errorf("another server was published after %s; promised are %s", published, outWithin())
	case published > outWithin():
		t.Logf("another server was published after %s; promised are %s, but timers were up to %s late", published, outWithin(), late)
	}
	after, err := c.Assignment(ctx, service)
	must.Do(t, err)
	if after.Addresses[plugin.node] != address {
		t.Errorf("the address was %s and is %s", address, after.Addresses[plugin.node])
	}
	must.Do(t, undo(victim))
	if err := plugin.Unpublish(ctx, service, "pod-"+service); err != nil {
		t.Error(err)
	}
	c.remove(t, service, []string{service}, []string{service})
}

// write writes a file of so many MiB, and calls at once after a quarter of it. It returns the
// hash of what was written and how long the slowest write took.
func write(path string, size int, at func() error) (hash []byte, longest time.Duration, err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	sum, block := sha256.New(), make([]byte, 1<<20)
	for i := range size {
		if i == size/4 {
			if err := at(); err != nil {
				return nil, 0, err
			}
		}
		if _, err := rand.Read(block); err != nil {
			return nil, 0, err
		}
		sum.Write(block)
		begun := time.Now()
		if _, err := file.Write(block); err != nil {
			return nil, 0, err
		}
		longest = max(longest, time.Since(begun))
	}
	return sum.Sum(nil), longest, file.Close()
}

func sameFile(path string, hash []byte) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), hash) {
		return fmt.Errorf("%s differs from what was written", path)
	}
	return nil
}

// backendOf is the server that an address points to.
func (c *Cluster) backendOf(ctx context.Context, service, address string) (netip.Addr, error) {
	backends, err := c.backends(ctx, service)
	if err != nil {
		return netip.Addr{}, err
	}
	a, err := netip.ParseAddr(backends[address])
	if err != nil {
		return netip.Addr{}, fmt.Errorf("NFSService %s: %s points to %q: %w", service, address, backends[address], err)
	}
	return a, nil
}

// waitPublished waits until the slice of an address names a server, another than before.
func (c *Cluster) waitPublished(ctx context.Context, service, address string, before netip.Addr) error {
	var s v1alpha1.NFSService
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: service}, &s); err != nil {
		return err
	}
	name := service
	for i, slot := range s.Status.Slots {
		if slot.Address == address {
			name = fmt.Sprintf("%s-slot-%d", service, i)
		}
	}
	return c.wait(ctx, func(ctx context.Context) (bool, error) {
		var list discoveryv1.EndpointSliceList
		err := c.Client.List(ctx, &list, client.InNamespace(Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
		if err != nil {
			return false, err
		}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if len(e.Addresses) > 0 && e.Addresses[0] != before.String() {
					return true, nil
				}
			}
		}
		return false, nil
	})
}
