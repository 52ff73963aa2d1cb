package definition

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/nfs/options"
)

// DefaultVersion of NFS that servers must serve (NFSServiceSpec.Versions).
const DefaultVersion = 4

// Service is the spec of an NFSService in the terms of the domain, with defaults.
type Service struct {
	Exposure nfs.Exposure
	// Port that clients mount, and the default port of backends.
	Port uint16
	// Backends are the static ones, sorted by address.
	Backends []nfs.Backend
	// ServerService is the Service of server pods, and PortName its NFS port; empty: none.
	ServerService, PortName string
	// Slots that the operator asks for at least; 0: the default.
	Slots    int32
	Shares   []string
	Versions []int32
	Health   health.Settings
	// MountPort of the MOUNT protocol; 0: ask the port mapper.
	MountPort uint16
	// Slack in percent.
	Slack int
	// Excess: a rebalance also moves nodes whose server is well.
	Excess       bool
	MountOptions []string
}

// SlotRules are the rules for the service's slots. If spec.slots is set, slots are added only for servers that would have none.
func (s *Service) SlotRules() assign.Rules {
	rules := assign.Rules{PerBackend: nfs.SlotsPerBackend, Slack: s.Slack, Excess: s.Excess}
	if s.Slots > 0 {
		rules.PerBackend = 1
	}
	return rules
}

// Read returns the spec of an NFSService, and all problems that the schema of the CustomResourceDefinition does not find,
// with paths such as spec.backends[2].address. Values with problems are left out, so that the rest can be used.
func Read(s *v1alpha1.NFSService) (Service, nfs.Problems) {
	in := s.Spec
	out := Service{
		Exposure: exposureOf(s), Port: uint16(PortOf(s)), Slots: ptr.Deref(in.Slots, 0), Versions: slices.Sorted(slices.Values(in.Versions)),
		Health: readHealth(in.Health), MountPort: uint16(in.Health.MountPort), Slack: int(ptr.Deref(in.SlackPercent, assign.DefaultSlack)),
		Excess: in.Rebalance == v1alpha1.RebalanceExcess, MountOptions: in.MountOptions,
	}
	if len(out.Versions) == 0 {
		out.Versions = []int32{DefaultVersion}
	}
	if in.ServerService != nil {
		out.ServerService, out.PortName = in.ServerService.Name, in.ServerService.PortName
	}
	var problems, found nfs.Problems
	out.Backends, problems = nfs.ParseBackends("spec.backends", in.Backends, int32(out.Port))
	problems = append(problems, nfs.CheckFamilies("spec.backends", out.Exposure, out.Backends)...)
	problems = append(problems, checkName(s.Name, out.Exposure)...)
	problems = append(problems, out.checkServerService(s.Name)...)
	out.Shares, found = readShares(in.Shares)
	return out, append(append(problems, found...), out.checkMountOptions()...)
}

func readShares(list []string) ([]string, nfs.Problems) {
	var problems nfs.Problems
	var shares []string
	for i, text := range list {
		path := nfs.Index("spec.shares", i)
		share, err := options.ParseShare(text)
		switch first := slices.Index(list[:i], text); {
		case err != nil:
			problems.Add(path, "%s", err)
		case first >= 0:
			problems.Add(path, "%q is also %s: remove one of them", text, nfs.Index("spec.shares", first))
		default:
			shares = append(shares, share)
		}
	}
	return shares, problems
}

func readHealth(in v1alpha1.NFSHealth) health.Settings {
	s := health.DefaultSettings()
	count := func(to *int, value *int32) { *to = int(ptr.Deref(value, int32(*to))) }
	count(&s.Failures, in.Failures)
	count(&s.Successes, in.Successes)
	count(&s.MaxEjected, in.MaxEjected)
	span := func(to *time.Duration, value *metav1.Duration) {
		if value != nil {
			*to = value.Duration
		}
	}
	span(&s.Interval, in.Interval)
	span(&s.Timeout, in.Timeout)
	// The schema refuses less, and objects of an older schema may have it: probes without a pause would flood the servers.
	s.Interval, s.Timeout = max(s.Interval, time.Second), max(s.Timeout, 100*time.Millisecond)
	s.Failures, s.Successes, s.MaxEjected = max(s.Failures, 1), max(s.Successes, 1), max(s.MaxEjected, 0)
	return s
}
