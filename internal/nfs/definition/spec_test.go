package definition

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/nfs"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/nfs/health"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 80) }

func service() *v1alpha1.NFSService {
	return &v1alpha1.NFSService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "files"},
		Spec: v1alpha1.NFSServiceSpec{
			Exposure: "PerNodeStable", Port: 2049, Slots: ptr.To[int32](8), Shares: []string{"/exports"}, Versions: []int32{4, 3},
			Backends:      []v1alpha1.NFSBackend{{Address: "10.0.0.2", Weight: ptr.To[int32](2), Zone: "a"}, {Address: "10.0.0.1", Port: 2050, Drain: true}},
			ServerService: &v1alpha1.NFSServerService{Name: "servers", PortName: "nfs"},
			Health:        v1alpha1.NFSHealth{Interval: &metav1.Duration{Duration: 2 * time.Second}, Failures: ptr.To[int32](5), MountPort: 20048},
			SlackPercent:  ptr.To[int32](10), Rebalance: "Excess", MountOptions: []string{"hard", "nconnect=4"},
		},
	}
}

func TestReadReturnsTheSpecWithDefaults(t *testing.T) {
	got, problems := Read(service())
	must.Do(t, problems.Err())
	if got.Backends[0].Addr.String() != "10.0.0.1:2050" || !got.Backends[0].Drain || got.Backends[1].Weight != 2 || got.Backends[1].Zone != "a" {
		t.Errorf("backends %+v", got.Backends)
	}
	if got.Slots != 8 || got.Slack != 10 || !got.Excess || got.MountPort != 20048 || got.ServerService != "servers" || !slices.Equal(got.Versions, []int32{3, 4}) {
		t.Errorf("got %+v", got)
	}
	if h := got.Health; h.Interval != 2*time.Second || h.Timeout != time.Second || h.Failures != 5 || h.Successes != 2 || h.MaxEjected != 50 {
		t.Errorf("health %+v", h)
	}
	least, problems := Read(&v1alpha1.NFSService{Spec: v1alpha1.NFSServiceSpec{Backends: []v1alpha1.NFSBackend{{Address: "fd00::1"}}}})
	want := Service{
		Exposure: nfs.PerNodeStable, Port: 2049, Versions: []int32{4}, Slack: assign.DefaultSlack, Health: least.Health,
		Backends: []nfs.Backend{{Addr: least.Backends[0].Addr, Weight: 1, Source: nfs.Static}},
	}
	if len(problems) > 0 || !reflect.DeepEqual(least, want) {
		t.Errorf("got %+v, %v", least, problems)
	}
}

// faults are mistakes of users, by the path that is reported.
var faults = map[string]func(*v1alpha1.NFSService){
	"metadata.name":            func(s *v1alpha1.NFSService) { s.Name = "1.files" },
	"spec.backends[0].address": func(s *v1alpha1.NFSService) { s.Spec.Backends[0].Address = "nfs.example.com" },
	"spec.shares[0]":           func(s *v1alpha1.NFSService) { s.Spec.Shares[0] = "exports/../etc" },
	"spec.mountOptions[1]":     func(s *v1alpha1.NFSService) { s.Spec.MountOptions[1] = "vers=5" },
}

// All mistakes in a spec are reported together, and nothing else.
func TestEveryMistakeIsReportedAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(sorted(faults)), 0, len(faults), rapid.ID[string]).Draw(t, "faults")
		s := service()
		for _, field := range chosen {
			faults[field](s)
		}
		_, problems := Read(s)
		var fields []string
		for _, p := range problems {
			fields = append(fields, p.Field)
		}
		slices.Sort(chosen)
		slices.Sort(fields)
		if !slices.Equal(chosen, fields) {
			t.Fatalf("got %v\nwant %v", fields, chosen)
		}
	})
}

func sorted(m map[string]func(*v1alpha1.NFSService)) []string {
	var list []string
	for field := range m {
		list = append(list, field)
	}
	slices.Sort(list)
	return list
}

func TestReadSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		change      func(*v1alpha1.NFSService)
		field, want string
	}{
		"a backend twice":       {func(s *v1alpha1.NFSService) { s.Spec.Backends[1] = v1alpha1.NFSBackend{Address: "::ffff:10.0.0.2"} }, "spec.backends[1].address", "remove one"},
		"two families":          {func(s *v1alpha1.NFSService) { s.Spec.Backends[1].Address = "fd00::1" }, "spec.backends", "one family"},
		"a share twice":         {func(s *v1alpha1.NFSService) { s.Spec.Shares = []string{"/a", "/a"} }, "spec.shares[1]", "remove one"},
		"another port to mount": {func(s *v1alpha1.NFSService) { s.Spec.MountOptions = []string{"port=1"} }, "spec.mountOptions", "not the port of the NFS service"},
		"an unknown option":     {func(s *v1alpha1.NFSService) { s.Spec.MountOptions = []string{"nconect=4"} }, "spec.mountOptions", "nconect is not an option"},
		"a version that is not probed": {func(s *v1alpha1.NFSService) {
			s.Spec.Versions, s.Spec.MountOptions = []int32{4}, []string{"vers=3", "nolock"}
		}, "spec.mountOptions", "version 3 is not among spec.versions ([4])"},
		"the published Service": {func(s *v1alpha1.NFSService) {
			s.Spec.ServerService = &v1alpha1.NFSServerService{Name: s.Name + "-slot-7"}
		}, "spec.serverService.name", "give the NFSService another name"},
		"a name too long": {func(s *v1alpha1.NFSService) { s.Name = strings.Repeat("a", 54) }, "metadata.name", "-slot-4095"},
	} {
		s := service()
		c.change(s)
		_, problems := Read(s)
		if len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Message, c.want) {
			t.Errorf("%s: got %v", name, problems)
		}
	}
	s := service()
	s.Name, s.Spec.Exposure, s.Spec.Slots, s.Spec.Rebalance = "1.files", "PerNode", nil, ""
	s.Spec.MountOptions = []string{"newopt", "sloppy", "port=1"}
	if _, problems := Read(s); len(problems) > 0 {
		t.Errorf("PerNode has no Services, and backends with ports of their own: %v", problems)
	}
}

func TestCheckUpdate(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*v1alpha1.NFSService)
		mounted bool
		field   string
	}{
		"nothing":             {func(*v1alpha1.NFSService) {}, true, ""},
		"the default written": {func(s *v1alpha1.NFSService) { s.Spec.Exposure, s.Spec.Port = "", 0 }, true, ""},
		"port while mounted":  {func(s *v1alpha1.NFSService) { s.Spec.Port = 2050 }, true, "spec.port"},
		"port, not mounted":   {func(s *v1alpha1.NFSService) { s.Spec.Port = 2050 }, false, ""},
	} {
		updated := service()
		c.change(updated)
		problems := CheckUpdate(service(), updated, c.mounted)
		if (c.field == "") != (len(problems) == 0) || len(problems) > 0 && problems[0].Field != c.field {
			t.Errorf("%s: got %v", name, problems)
		}
	}
}

func TestUpdateWarnsOfMountsThatCannotMove(t *testing.T) {
	old := service()
	old.Spec.Exposure = "PerNode"
	old.Status.Backends = []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2050", Source: "static", Nodes: 1}, {Address: "10.0.0.2:2049", Source: "static", Nodes: 2}, {Address: "10.9.0.1:2049", Source: "service", Nodes: 3}}
	updated := old.DeepCopy()
	updated.Spec.Backends = []v1alpha1.NFSBackend{{Address: "10.0.0.2", Drain: true}}
	warnings := UpdateWarnings(old, updated)
	if len(warnings) != 2 || !strings.Contains(warnings[0], "mounted by 1 node:") || !strings.Contains(warnings[1], "drains") {
		t.Errorf("got %q", warnings)
	}
	updated.Spec.Exposure = "PerNodeStable"
	if warnings := UpdateWarnings(old, updated); warnings != nil {
		t.Errorf("slots move nodes: %q", warnings)
	}
}

func TestAddressesOfStatus(t *testing.T) {
	s := service()
	s.Status = v1alpha1.NFSServiceStatus{
		Address: "10.96.0.1", Backend: "10.0.0.2:2049",
		Backends: []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2050", Health: "Down", Weight: 5000}, {Address: "10.0.0.2:2049", Health: "Healthy"}, {Address: "broken"}},
		Slots:    []v1alpha1.NFSSlotStatus{{Address: "10.96.0.10", Backend: "10.0.0.2:2049", Nodes: 3}, {Address: "", Backend: "10.0.0.2:2049"}, {Address: "10.96.0.11", Backend: "10.0.0.1:2050"}},
	}
	members, slots := Members(&s.Status), Slots(&s.Status)
	if len(members) != 2 || members[0].Health != nfs.Down || members[0].Weight != nfs.MaxWeight || members[1].Weight != 1 || len(slots) != 3 {
		t.Fatalf("got %+v, %+v", members, slots)
	}
	for exposure, want := range map[nfs.Exposure]string{
		nfs.PerNode: "map[10.0.0.1:2050:10.0.0.1:2050 10.0.0.2:10.0.0.2:2049]", nfs.Stable: "map[10.96.0.1:2051:10.0.0.2:2049]",
		nfs.PerNodeStable: "map[10.96.0.10:2051:10.0.0.2:2049 10.96.0.11:2051:10.0.0.1:2050]",
	} {
		must.Equal(t, fmt.Sprint(Addresses(exposure, &s.Status, members, slots, 2051)), want, "%s", exposure)
	}
	s.Status.Unpublished, s.Status.Slots[0].Unpublished = "AddressTaken", "AddressTaken"
	must.Equal(t, len(Addresses(nfs.Stable, &s.Status, members, slots, 2051)), 0, "an address that is not published")
	must.Equal(t, len(Addresses(nfs.PerNodeStable, &s.Status, members, slots, 2051)), 1, "a slot that is not published")
}

func TestOnlyBackendsOfTheFamilyAreReachable(t *testing.T) {
	status := v1alpha1.NFSServiceStatus{Backends: []v1alpha1.NFSBackendStatus{{Address: "10.0.0.1:2049"}, {Address: "[fd00::1]:2049"}}}
	members := Members(&status)
	if got := Reachable(&status, members); len(got) != 2 {
		t.Errorf("without addresses: %v", got)
	}
	status.Slots = []v1alpha1.NFSSlotStatus{{}, {Address: "fd00:96::1"}}
	if got := Reachable(&status, members); len(got) != 1 || !got[0].Addr.Addr().Is6() {
		t.Errorf("IPv6 slots: %v", got)
	}
	status.Address = "10.96.0.1"
	if got := Reachable(&status, members); len(got) != 1 || !got[0].Addr.Addr().Is4() {
		t.Errorf("an IPv4 address: %v", got)
	}
}

// An object that was stored before the schema had ranges.
func TestHealthOfAnOlderSchemaIsBounded(t *testing.T) {
	none := &metav1.Duration{}
	got := readHealth(v1alpha1.NFSHealth{Interval: none, Timeout: none, Failures: ptr.To[int32](0), Successes: ptr.To[int32](-1), MaxEjected: ptr.To[int32](-1)})
	must.Equal(t, got, health.Settings{Interval: time.Second, Timeout: 100 * time.Millisecond, Failures: 1, Successes: 1}, "bounds")
}
