package spec

import (
	"cmp"
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

// Read returns the spec of an NFSService, and all its problems with paths such as
// spec.backends[2].address. Values with problems are left out or set to their
// defaults, so that the rest can be used.
func Read(s *v1alpha1.NFSService) (Service, nfs.Problems) {
	in := s.Spec
	out := Service{
		Exposure: nfs.Exposure(cmp.Or(in.Exposure, string(nfs.PerNodeStable))), Port: nfs.DefaultPort,
		Slots: ptr.Deref(in.Slots, 0), MountOptions: in.MountOptions,
	}
	var problems nfs.Problems
	if in.Port != 0 {
		problems = append(problems, nfs.CheckPort("spec.port", in.Port)...)
		out.Port = port(in.Port, nfs.DefaultPort)
	}
	var found nfs.Problems
	out.Backends, found = nfs.ParseBackends("spec.backends", in.Backends, int32(out.Port))
	problems = append(problems, found...)
	problems = append(problems, checkZones(in.Backends)...)
	problems = append(problems, out.readServerService(in)...)
	problems = append(problems, nfs.CheckExposure("spec", out.Exposure, in.Slots)...)
	problems = append(problems, nfs.CheckFamilies("spec.backends", out.Exposure, out.Backends)...)
	problems = append(problems, checkName(s.Name, out.Exposure)...)
	out.Shares, found = readShares(in.Shares)
	problems = append(problems, found...)
	out.Versions, found = readVersions(in.Versions)
	problems = append(problems, found...)
	out.Health = readHealth(in.Health)
	if found = out.Health.Check("spec.health"); len(found) > 0 {
		problems = append(problems, found...)
		out.Health = health.DefaultSettings()
	}
	if in.Health.MountPort != 0 {
		problems = append(problems, nfs.CheckPort("spec.health.mountPort", in.Health.MountPort)...)
		out.MountPort = port(in.Health.MountPort, 0)
	}
	problems = append(problems, out.readBalance(in)...)
	problems = append(problems, out.checkMountOptions()...)
	return out, problems
}

func port(value int32, otherwise uint16) uint16 {
	if value < 1 || value > 65535 {
		return otherwise
	}
	return uint16(value)
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

func readVersions(list []int32) ([]int32, nfs.Problems) {
	var problems nfs.Problems
	var versions []int32
	for i, version := range list {
		path := nfs.Index("spec.versions", i)
		switch first := slices.Index(list[:i], version); {
		case version != 3 && version != 4:
			problems.Add(path, "%d is not a version of NFS that Fairlead probes: write 3 or 4", version)
		case first >= 0:
			problems.Add(path, "%d is also %s: remove one of them", version, nfs.Index("spec.versions", first))
		default:
			versions = append(versions, version)
		}
	}
	if len(versions) == 0 {
		versions = []int32{DefaultVersion}
	}
	slices.Sort(versions)
	return versions, problems
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
	return s
}

// readBalance reads the slack and the rebalance.
func (out *Service) readBalance(in v1alpha1.NFSServiceSpec) nfs.Problems {
	var problems nfs.Problems
	out.Slack = assign.DefaultSlack
	if slack := int(ptr.Deref(in.SlackPercent, assign.DefaultSlack)); slack < 0 || slack > maxSlack {
		problems.Add("spec.slackPercent", "%d is out of range: write 0 to %d", slack, maxSlack)
	} else {
		out.Slack = slack
	}
	switch in.Rebalance {
	case "", v1alpha1.RebalanceNever:
	case v1alpha1.RebalanceExcess:
		out.Excess = out.Exposure == nfs.PerNodeStable
		if !out.Excess {
			problems.Add("spec.rebalance", "only exposure %s can move nodes whose server is well: write %s, or remove the field", nfs.PerNodeStable, v1alpha1.RebalanceNever)
		}
	default:
		problems.Add("spec.rebalance", "%q is not known: write %s or %s", in.Rebalance, v1alpha1.RebalanceNever, v1alpha1.RebalanceExcess)
	}
	return problems
}

// maxSlack of NFSServiceSpec.SlackPercent.
const maxSlack = 1000
