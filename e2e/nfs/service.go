package nfs

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// Namespace of NFS services and workloads.
const Namespace = "default"

// Driver is the name of the CSI driver.
const Driver = "nfs.fairlead.io"

// Intervals of probes in tests: a dead server is out after at most three of them.
const (
	probeInterval = "1s"
	probeTimeout  = "300ms"
	probeFailures = 3
)

// NewService is an NFSService with static backends.
func NewService(name string, exposure nfs.Exposure, servers ...netip.Addr) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: v1alpha1.NFSServiceSpec{
			Exposure: string(exposure), Versions: []int32{3}, Shares: []string{Export},
			Health: v1alpha1.NFSHealth{
				Interval: duration(probeInterval), Timeout: duration(probeTimeout), Failures: ptr.To(int32(probeFailures)), MountPort: nfsPort,
			},
		},
	}
	for _, a := range servers {
		s.Spec.Backends = append(s.Spec.Backends, v1alpha1.NFSBackend{Address: a.String()})
	}
	return s
}

// CreateService creates a service and waits until all its backends are healthy.
func (c *Cluster) CreateService(ctx context.Context, s *v1alpha1.NFSService) error {
	if err := c.Client.Create(ctx, s); err != nil {
		return fmt.Errorf("creating NFSService %s: %w", s.Name, err)
	}
	return c.WaitService(ctx, s.Name, func(now *v1alpha1.NFSService) bool {
		return int(now.Status.HealthyBackends) == len(s.Spec.Backends) && ready(now)
	})
}

func ready(s *v1alpha1.NFSService) bool {
	return meta.IsStatusConditionTrue(s.Status.Conditions, v1alpha1.NFSReady)
}

// Service reads an NFSService.
func (c *Cluster) Service(ctx context.Context, name string) (*v1alpha1.NFSService, error) {
	var s v1alpha1.NFSService
	if err := c.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("reading NFSService %s: %w", name, err)
	}
	return &s, nil
}

// WaitService waits until an NFSService is as wanted.
func (c *Cluster) WaitService(ctx context.Context, name string, wanted func(*v1alpha1.NFSService) bool) error {
	var last *v1alpha1.NFSService
	err := c.wait(ctx, func(ctx context.Context) (bool, error) {
		s, err := c.Service(ctx, name)
		if err != nil {
			return false, err
		}
		last = s
		return wanted(s), nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("waiting for NFSService %s: %w; its status: %s", name, err, asJSON(last.Status))
	}
	return err
}

// ChangeService changes the spec of an NFSService.
func (c *Cluster) ChangeService(ctx context.Context, name string, change func(*v1alpha1.NFSServiceSpec)) error {
	s, err := c.Service(ctx, name)
	if err != nil {
		return err
	}
	before := s.DeepCopy()
	change(&s.Spec)
	if err := c.Client.Patch(ctx, s, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("changing NFSService %s: %w", name, err)
	}
	return nil
}

// patchJSON is a merge patch.
func patchJSON(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
