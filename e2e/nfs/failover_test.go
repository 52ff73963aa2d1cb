package nfs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// outWithin is the promised time from the end of a server to a slice with another one: failures × interval, a second, and
// the last probe of a server that hangs.
func outWithin() time.Duration {
	return probeFailures*duration(probeInterval).Duration + duration(probeTimeout).Duration + time.Second
}

// A client that copies a file through mount, kube-proxy and node plugin sees only a pause if its server dies or hangs.
func TestCopySurvivesServer(t *testing.T) {
	ends := map[string]struct{ end, undo func(*Server) error }{
		"killed": {(*Server).Kill, func(s *Server) error { return s.Start(context.Background()) }},
		"hangs":  {(*Server).Hang, (*Server).Resume},
	}
	for name, server := range ends {
		copyOfEach(t, name, func(s *scene, address string, copied func(func() error)) {
			backend, err := s.c.backendOf(s.ctx, s.service, address)
			s.must(err)
			victim := s.c.running[backend]
			if victim == nil {
				s.Fatalf("%s points to %s, which is no server of this test", address, backend)
			}
			var published time.Duration
			measured := lateness(s.T)
			died, moved := make(chan time.Time, 1), make(chan error, 1)
			go func() {
				at := <-died
				err := s.c.waitPublished(s.ctx, s.service, address, backend)
				published = time.Since(at)
				moved <- err
			}()
			copied(func() error {
				defer func() { died <- time.Now() }()
				return server.end(victim)
			})
			s.must(<-moved)
			s.Logf("another server was published %s after the end of the first", published.Round(time.Millisecond))
			if late := measured(); published > outWithin() && late <= quiet {
				s.Errorf("another server was published after %s; promised are %s", published, outWithin())
			} else if published > outWithin() {
				s.Logf("promised are %s, but timers were up to %s late", outWithin(), late)
			}
			s.must(server.undo(victim))
		})
	}
}

// A deleted Service is recreated with its ClusterIP, and mounts keep working.
func TestDeletedServiceIsBackWithItsClusterIP(t *testing.T) {
	copyOfEach(t, "deleted", func(s *scene, address string, copied func(func() error)) {
		service := s.serviceWith(address)
		copied(func() error { return s.c.Client.Delete(s.ctx, service) })
		if now := s.returned(service); now.Spec.ClusterIP != address {
			s.Errorf("the Service had %s and has %s", address, now.Spec.ClusterIP)
		}
		s.must(reached(address)) // new connections too
	})
}

// copyOfEach mounts a volume through a ClusterIP, for each exposure that has one. copied copies a file through the mount,
// and calls its argument meanwhile.
func copyOfEach(t *testing.T, name string, do func(s *scene, address string, copied func(func() error))) {
	for _, exposure := range []nfs.Exposure{nfs.Stable, nfs.PerNodeStable} {
		t.Run(name+"/"+string(exposure), func(t *testing.T) {
			s := newScene(t, "copy-"+name+"-"+strings.ToLower(string(exposure)), exposure, 3)
			node := s.nodes(0, 1)[0]
			s.must(s.c.startProxyOnce(s.ctx, node))
			address := s.attach(node)[node]
			plugin := s.plugin()
			// The timeout is longer than the test: the client does not give up a server.
			path, err := s.c.Publish(s.ctx, plugin, s.service, "pod", "timeo=6000")
			s.must(err)
			do(s, address, func(meanwhile func() error) {
				hash, longest, err := write(filepath.Join(path, s.service), 20, meanwhile)
				s.must(err)
				s.must(sameFile(filepath.Join(s.c.Share, s.service), hash))
				s.Logf("the longest write took %s", longest.Round(time.Millisecond))
			})
			s.same(map[string]string{node: address}, s.attached(1))
			s.must(plugin.Unpublish(s.ctx, s.service, "pod"))
		})
	}
}

// reached waits until an address accepts connections.
func reached(address string) error {
	var err error
	for range 100 {
		var connection net.Conn
		if connection, err = net.DialTimeout("tcp", net.JoinHostPort(address, "2049"), time.Second); err == nil {
			return connection.Close()
		}
		time.Sleep(50 * time.Millisecond) // kube-proxy may not have written its rules yet
	}
	return err
}

// write writes a file of so many MiB, and calls at after a quarter of it. It returns the hash of the file and the time of
// the slowest write.
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

// waitPublished waits until the slice of an address has another server.
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
