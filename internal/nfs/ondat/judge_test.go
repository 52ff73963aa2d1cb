package ondat

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 300, 30) }

// volume is shared, and served at the endpoint.
func volume(id, endpoint string) Volume {
	return Volume{
		ID: id, Name: "pv-" + id, NamespaceID: "ns", AttachmentType: AttachedNFS, ServiceEndpoint: endpoint, Version: "1",
		Labels: map[string]string{LabelPV: "pv-" + id, LabelPVC: "data-" + id, LabelNamespace: "apps"},
	}
}

func TestWhichVolumesCount(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Volume)
		state   State
		reason  string
		message string
	}{
		"shared":                  {func(*Volume) {}, Served, "", ""},
		"detached":                {func(v *Volume) { v.ServiceEndpoint, v.AttachmentType = "", "detached" }, NotServed, "", ""},
		"failing over":            {func(v *Volume) { v.ServiceEndpoint = "" }, NotServed, "", ""},
		"plain":                   {func(v *Volume) { v.ServiceEndpoint, v.Labels = "", nil }, Plain, "", ""},
		"no labels":               {func(v *Volume) { v.Labels = nil }, Ignored, "MissingLabels", "lacks the label " + LabelPV + ", " + LabelPVC + ", " + LabelNamespace},
		"no PV":                   {func(v *Volume) { delete(v.Labels, LabelPV) }, Ignored, "MissingLabels", "--extra-create-metadata"},
		"no PVC":                  {func(v *Volume) { delete(v.Labels, LabelPVC) }, Ignored, "MissingLabels", LabelPVC},
		"no namespace":            {func(v *Volume) { v.Labels[LabelNamespace] = "" }, Ignored, "MissingLabels", LabelNamespace},
		"a path":                  {func(v *Volume) { v.Labels[LabelPVC] = "../secrets" }, Ignored, "InvalidLabels", `"../secrets"`},
		"a long label":            {func(v *Volume) { v.Labels[LabelPV] = strings.Repeat("x", 5000) }, Ignored, "InvalidLabels", "…"},
		"a bad label, not served": {func(v *Volume) { v.Labels[LabelPVC], v.ServiceEndpoint = "A_B", "" }, Plain, "", ""},
		"a long endpoint":         {func(v *Volume) { v.ServiceEndpoint = strings.Repeat("1", 5000) + ":1" }, Ignored, "InvalidEndpoint", "…"},
	} {
		v := volume("1", "10.0.0.1:32001")
		c.change(&v)
		f := Judge([]Volume{v})[0]
		if f.State != c.state || f.Why.Reason != c.reason || !strings.Contains(f.Why.Message, c.message) || (f.Why.Reason == "") != (f.Why.Message == "") || len(f.Why.Message) > 600 {
			t.Errorf("%s: %s %s %q", name, f.State, f.Why.Reason, f.Why.Message)
		}
		must.Equal(t, f.State == Served, f.Server.IsValid(), "%s: server %s", name, f.Server)
		must.True(t, f.Why.Reason != "InvalidLabels" || f.PVC+f.PV+f.Namespace == "", "%s: an object of a bad name is looked for", name)
	}
}

// The released manager takes all of these for addresses, and the API server refuses them each poll.
func TestEndpointsThatCannotBePublished(t *testing.T) {
	for _, endpoint := range []string{
		":2049", "0.0.0.0:2049", "127.0.0.1:2049", "nfs.example.com:2049", "fe80::1%eth0", "[fe80::1%eth0]:2049", "10.0.0.1:0", "10.0.0.1:-1", "10.0.0.1:70000",
		"10.0.0.1", "10.0.0.1:", "[::1]:2049", "[::]:2049", "fd00::1:2049", "[fd00::1]", "255.255.255.255:1", "224.0.0.1:1", " 10.0.0.1:1", "10.0.0.1:1 ", "None:2049",
	} {
		f := Judge([]Volume{volume("1", endpoint)})[0]
		must.True(t, f.State == Ignored && f.Why.Reason == "InvalidEndpoint", "%q: %s %s", endpoint, f.State, f.Server)
	}
	for endpoint, want := range map[string]string{"10.0.0.1:1": "10.0.0.1:1", "[fd00::1]:65535": "[fd00::1]:65535", "[::ffff:10.0.0.1]:1": "10.0.0.1:1"} {
		f := Judge([]Volume{volume("1", endpoint)})[0]
		must.True(t, f.State == Served && f.Server.String() == want, "%q: %s %s", endpoint, f.State, f.Server)
	}
}

// After a failover another volume's server may get an address that a volume still names.
func TestServerBelongsToOneVolume(t *testing.T) {
	const at = "10.0.0.1:32001"
	stale := volume("2", at)
	stale.AttachmentType = "detached"
	for name, c := range map[string]struct {
		volumes []Volume
		want    string
	}{
		"one is attached":      {[]Volume{volume("1", at), stale}, "[Served Ignored]"},
		"in the other order":   {[]Volume{stale, volume("1", at)}, "[Ignored Served]"},
		"both are attached":    {[]Volume{volume("1", at), volume("2", at), volume("3", "10.0.0.1:32002")}, "[Ignored Ignored Served]"},
		"none is attached":     {[]Volume{stale, stale}, "[Ignored Ignored]"},
		"as IPv6":              {[]Volume{volume("1", at), volume("2", "[::ffff:10.0.0.1]:32001")}, "[Ignored Ignored]"},
		"one has no labels":    {[]Volume{volume("1", at), {ID: "2", ServiceEndpoint: at}}, "[Served Ignored]"},
		"alone, says detached": {[]Volume{stale}, "[Served]"},
	} {
		var states []State
		for _, f := range Judge(c.volumes) {
			states = append(states, f.State)
			if f.State == Ignored && f.Why.Reason == "EndpointOfTwoVolumes" && !strings.Contains(f.Why.Message, "both report NFS server 10.0.0.1:32001") {
				t.Errorf("%s: %s", name, f.Why.Message)
			}
		}
		must.Equal(t, fmt.Sprint(states), c.want, "%s", name)
	}
}

func TestJudgeInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoints := rapid.SampledFrom([]string{"", "10.0.0.1:1", "10.0.0.1:2", "[fd00::1]:1", "[::ffff:10.0.0.1]:1", "127.0.0.1:1", "x"})
		var list []Volume
		for i := range rapid.IntRange(0, 12).Draw(t, "volumes") {
			v := volume(fmt.Sprint(i), endpoints.Draw(t, "endpoint"))
			v.AttachmentType = rapid.SampledFrom([]string{"nfs", "detached", "host", ""}).Draw(t, "type")
			if drop := rapid.SampledFrom([]string{"", "", LabelPV, LabelPVC, LabelNamespace}).Draw(t, "drop"); drop != "" {
				delete(v.Labels, drop)
			}
			list = append(list, v)
		}
		found, seen := Judge(list), map[netip.AddrPort]bool{}
		for i, f := range found {
			must.True(t, f.ID == list[i].ID, "place %d: %s", i, f.ID)
			must.True(t, (f.State == Ignored) == (f.Why.Reason != ""), "%+v", f)
			if f.State != Served {
				continue
			}
			must.True(t, !seen[f.Server] && len(f.Labels) == 3 && f.Server.Addr().IsGlobalUnicast(), "%+v", f)
			seen[f.Server] = true
		}
	})
}

func FuzzJudge(f *testing.F) {
	f.Add("10.0.0.1:2049", "pv", "data", "apps", "10.96.0.1:2049")
	f.Add("[fd00::1%eth0]:1", "", "../x", "a.b", "fd00::1:2049")
	f.Fuzz(func(t *testing.T, endpoint, pv, pvc, namespace, published string) {
		v := Volume{ID: "1", ServiceEndpoint: endpoint, Labels: map[string]string{LabelPV: pv, LabelPVC: pvc, LabelNamespace: namespace, LabelMountEndpoint: published}}
		got := Judge([]Volume{v})[0]
		if got.State == Served && (!got.Server.IsValid() || got.Server.Port() == 0 || strings.ContainsAny(got.PV+got.PVC+got.Namespace, "/ \n")) {
			t.Errorf("%+v", got)
		}
		name, err := got.serviceName(ByPVC)
		must.True(t, got.State != Served || err != nil || name == pvc || name == pv, "name %q", name)
		ip := got.RecordedIP()
		must.True(t, !ip.IsValid() || netip.MustParseAddrPort(MountEndpoint(ip)).Addr() == ip, "%s", ip)
		must.True(t, len(got.Why.Message) <= 4000, "%d bytes", len(got.Why.Message))
	})
}

func TestPublishedAddressIsRead(t *testing.T) {
	for label, want := range map[string]string{
		"10.96.0.1:2049": "10.96.0.1", "[fd00::1]:2049": "fd00::1",
		// Of the released manager, for IPv6 and for a Service without an address.
		"fd00::1:2049": "invalid IP", "None:2049": "invalid IP", ":2049": "invalid IP",
		"10.96.0.1:111": "invalid IP", "10.96.0.1": "invalid IP", "": "invalid IP",
	} {
		v := Volume{Labels: map[string]string{LabelMountEndpoint: label}}
		must.Equal(t, v.RecordedIP().String(), want, "%q", label)
	}
	for ip, want := range map[string]string{"10.96.0.1": "10.96.0.1:2049", "fd00::1": "[fd00::1]:2049"} {
		must.Equal(t, MountEndpoint(netip.MustParseAddr(ip)), want, "%s", ip)
	}
}

func TestUnlistedVolumesStay(t *testing.T) {
	in := func(namespace, id, endpoint string) Volume {
		return Volume{ID: id, NamespaceID: namespace, ServiceEndpoint: endpoint}
	}
	before := []Volume{in("a", "1", "x"), in("a", "2", "x"), in("b", "3", "x")}
	failed := map[string]error{"b": fmt.Errorf("x")}
	for name, c := range map[string]struct {
		listing  Listing
		want     string
		complete bool
	}{
		"all listed":            {Listing{Volumes: []Volume{in("a", "2", "y")}, Listed: map[string]bool{"a": true, "b": true}}, "2y", true},
		"one failed":            {Listing{Volumes: []Volume{in("a", "2", "y")}, Listed: map[string]bool{"a": true}, Failed: failed}, "2y 3x", false},
		"one is not shown":      {Listing{Volumes: []Volume{in("a", "4", "y")}, Listed: map[string]bool{"a": true}}, "3x 4y", true},
		"all failed":            {Listing{Failed: failed}, "1x 2x 3x", false},
		"no namespace is shown": {Listing{}, "1x 2x 3x", false},
	} {
		var got []string
		for _, v := range c.listing.Merge(before) {
			got = append(got, v.ID+v.ServiceEndpoint)
		}
		must.Equal(t, strings.Join(got, " "), c.want, "%s", name)
		must.Equal(t, c.listing.IsComplete(), c.complete, "%s: complete", name)
	}
}
