package nfs

import (
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
)

// names fails the test unless an error names all of the texts.
func names(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in: %v", text, err)
		}
	}
}

func TestBadServiceIsRefusedWithAllProblems(t *testing.T) {
	c := shared(t)
	bad := NewService("bad", nfs.PerNode, ServerAddress(1), ServerAddress(1))
	bad.Spec.Backends = append(bad.Spec.Backends, v1alpha1.NFSBackend{Address: "nfs.example.com"})
	bad.Spec.Shares = []string{"exports"}
	bad.Spec.MountOptions = []string{"nconect=4"}
	names(t, c.Client.Create(t.Context(), bad), "spec.backends[1]", "spec.backends[2].address", "spec.shares[0]", "spec.mountOptions")
}

// The schema refuses these also while Fairlead is down, and nothing else checks them.
func TestSchemaRefusesBadValues(t *testing.T) {
	c := shared(t)
	for name, bad := range map[string]struct {
		change func(*v1alpha1.NFSServiceSpec)
		says   string
	}{
		"exposure":       {func(s *v1alpha1.NFSServiceSpec) { s.Exposure = "Shared" }, "spec.exposure"},
		"port":           {func(s *v1alpha1.NFSServiceSpec) { s.Port = 70000 }, "spec.port"},
		"no source":      {func(s *v1alpha1.NFSServiceSpec) { s.Backends = nil }, "write backends, serverService, or both"},
		"backend's port": {func(s *v1alpha1.NFSServiceSpec) { s.Backends[0].Port = -1 }, "spec.backends[0].port"},
		"no weight":      {func(s *v1alpha1.NFSServiceSpec) { s.Backends[0].Weight = ptr.To[int32](0) }, "spec.backends[0].weight"},
		"weight":         {func(s *v1alpha1.NFSServiceSpec) { s.Backends[0].Weight = ptr.To[int32](1001) }, "spec.backends[0].weight"},
		"zone":           {func(s *v1alpha1.NFSServiceSpec) { s.Backends[0].Zone = "a b" }, "spec.backends[0].zone"},
		"server":         {func(s *v1alpha1.NFSServiceSpec) { s.ServerService = &v1alpha1.NFSServerService{Name: "Servers"} }, "spec.serverService.name"},
		"name of port": {func(s *v1alpha1.NFSServiceSpec) {
			s.ServerService = &v1alpha1.NFSServerService{Name: "a", PortName: "a/b"}
		}, "spec.serverService.portName"},
		"no slots":        {func(s *v1alpha1.NFSServiceSpec) { s.Slots = ptr.To[int32](0) }, "spec.slots"},
		"slots":           {func(s *v1alpha1.NFSServiceSpec) { s.Slots = ptr.To[int32](4097) }, "spec.slots"},
		"slots of Stable": {func(s *v1alpha1.NFSServiceSpec) { s.Exposure, s.Slots = "Stable", ptr.To[int32](8) }, "only PerNodeStable has slots"},
		"versions":        {func(s *v1alpha1.NFSServiceSpec) { s.Versions = []int32{4, 2} }, "spec.versions[1]"},
		"a version twice": {func(s *v1alpha1.NFSServiceSpec) { s.Versions = []int32{3, 3} }, "spec.versions[1]"},
		"interval":        {func(s *v1alpha1.NFSServiceSpec) { s.Health.Interval = duration("2h") }, "spec.health.interval"},
		"short interval": {func(s *v1alpha1.NFSServiceSpec) {
			s.Health.Interval, s.Health.Timeout = duration("900ms"), duration("200ms")
		}, "spec.health.interval"},
		"timeout":        {func(s *v1alpha1.NFSServiceSpec) { s.Health.Timeout = duration("10s") }, "longer than the interval"},
		"short timeout":  {func(s *v1alpha1.NFSServiceSpec) { s.Health.Timeout = duration("99ms") }, "spec.health.timeout"},
		"failures":       {func(s *v1alpha1.NFSServiceSpec) { s.Health.Failures = ptr.To[int32](0) }, "spec.health.failures"},
		"successes":      {func(s *v1alpha1.NFSServiceSpec) { s.Health.Successes = ptr.To[int32](101) }, "spec.health.successes"},
		"maxEjected":     {func(s *v1alpha1.NFSServiceSpec) { s.Health.MaxEjected = ptr.To[int32](101) }, "spec.health.maxEjected"},
		"mountPort":      {func(s *v1alpha1.NFSServiceSpec) { s.Health.MountPort = -1 }, "spec.health.mountPort"},
		"slack":          {func(s *v1alpha1.NFSServiceSpec) { s.SlackPercent = ptr.To[int32](-1) }, "spec.slackPercent"},
		"rebalance":      {func(s *v1alpha1.NFSServiceSpec) { s.Rebalance = "Always" }, "spec.rebalance"},
		"excess, Stable": {func(s *v1alpha1.NFSServiceSpec) { s.Exposure, s.Rebalance = "Stable", "Excess" }, "only exposure PerNodeStable can move"},
	} {
		s := NewService("bad", nfs.PerNodeStable, ServerAddress(1))
		bad.change(&s.Spec)
		t.Run(name, func(t *testing.T) { names(t, c.Client.Create(t.Context(), s), bad.says) })
	}
}

func TestBadVolumesAreRefused(t *testing.T) {
	c := shared(t)
	for _, driver := range []string{Driver, gkeDriver} {
		v := Volume{Name: "bad", Driver: driver, Service: "none", Share: "../exports", Options: []string{"read_ahead_kb=x", "nconect=4"}}
		err := c.CreateVolume(t.Context(), v)
		names(t, err, "spec.csi.volumeAttributes[share]", "spec.mountOptions")
		if err != nil && !strings.Contains(err.Error(), "read_ahead_kb") {
			t.Errorf("the read-ahead is not named: %v", err)
		}
	}
}

func TestMountedServiceIsNotDeleted(t *testing.T) {
	s := newScene(t, "mounted", nfs.PerNodeStable, 1)
	nodes := s.nodes(0, 2)
	s.attach(nodes...)
	names(t, s.c.Client.Delete(s.ctx, s.get()), nodes[0]+" (mounted)", nodes[1]+" (mounted)", "Delete the pods")
	if s.get().DeletionTimestamp != nil {
		t.Error("it is being deleted")
	}
}

// The servers of the example do not exist here. The service gets its addresses all the same, and the claim its volume.
func TestExampleIsAccepted(t *testing.T) {
	c := shared(t)
	const file = "../../docs/examples/nfs-service.yaml"
	kubectl := func(args ...string) string {
		out, err := c.Kubectl(t.Context(), "", args...)
		if err != nil {
			t.Errorf("kubectl %v: %v\n%s", args, err, out)
		}
		return out
	}
	if out := kubectl("apply", "-f", file); strings.Contains(out, "Warning") {
		t.Error(out)
	}
	kubectl("wait", "--for=jsonpath={.status.phase}=Bound", "pvc/pool-data", "--timeout=1m")
	kubectl("-n", "storage", "wait", "--for=jsonpath={.status.slots[0].address}", "nfsservice/pool", "--timeout=1m")
	kubectl("delete", "-f", file)
}
