package config

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const head = "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\n"

// settle is the default: longer than the API server's request timeout of a minute.
var settle = metav1.Duration{Duration: 65 * time.Second}

func defaults() *Configuration {
	return &Configuration{
		APIVersion: "config.fairlead.io/v1alpha1", Kind: "Configuration",
		ClusterDomain: "cluster.local",
		Longhorn: &Longhorn{
			Namespace: "longhorn-system",
			Duties:    Duties{Settings: Apply, Pods: On, Services: On, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off},
			Networks:  Networks{Missing: settings.Warn, InUse: settings.Warn, Settle: settle, Gate: rollout.GateCluster},
			Workloads: Workloads{MaxPercent: 100},
		},
		Fencing: noFencing(),
		NFS:     NFS{Mode: On, Statd: Off, Drivers: []NFSDriver{{Name: "nfs.fairlead.io", NodeAnnotations: NodeAnnotationsOff}}},
	}
}

// noFencing protects nothing, until profiles are given.
func noFencing() Fencing {
	return Fencing{
		MaxAge:      metav1.Duration{Duration: 15 * time.Minute},
		Returning:   Returning{ReadyFor: metav1.Duration{Duration: time.Minute}},
		CephClients: CephClients{Mode: Off},
		Tainting:    Tainting{Mode: Off, NotReadyFor: metav1.Duration{Duration: 5 * time.Minute}, MaxNodes: 1, MaxPercent: 34, StormNodes: 2, StormPercent: 20, StormWindow: metav1.Duration{Duration: 5 * time.Minute}, MaxStaleness: metav1.Duration{Duration: time.Minute}},
	}
}

func TestDefaultsNeedNoFile(t *testing.T) {
	got, err := Load("")
	must.True(t, err == nil && reflect.DeepEqual(got, defaults()), "got %+v, %v", got, err)
}

func TestLoadReadsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	must.Do(t, os.WriteFile(path, []byte(head+"clusterDomain: corp.example\n"), 0o600))
	want := defaults()
	want.ClusterDomain = "corp.example"
	got, err := Load(path)
	must.True(t, err == nil && reflect.DeepEqual(got, want), "got %+v, %v", got, err)
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "configuration.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "reading the configuration: ") {
		t.Errorf("no file: got %v", err)
	}
	must.Do(t, os.WriteFile(path, []byte("kind: Pod\n"), 0o600))
	_, err := Load(path)
	want := "configuration " + path + `: got apiVersion "", kind "Pod": want apiVersion: config.fairlead.io/v1alpha1, kind: Configuration`
	must.True(t, err != nil && err.Error() == want, "got %v, want %s", err, want)
}

func TestParse(t *testing.T) {
	with := func(change func(*Configuration)) *Configuration {
		c := defaults()
		change(c)
		return c
	}
	duties := func(d Duties) *Configuration { return with(func(c *Configuration) { c.Longhorn.Duties = d }) }
	section := func(lines string) string { return head + "longhorn:\n" + lines }
	for name, test := range map[string]struct {
		file    string
		want    *Configuration
		problem string
	}{
		"nothing but its kind": {file: head, want: defaults()},
		"JSON is YAML":         {file: `{"apiVersion": "config.fairlead.io/v1alpha1", "kind": "Configuration"}`, want: defaults()},
		"another namespace":    {file: section("  namespace: storage\n"), want: with(func(c *Configuration) { c.Longhorn.Namespace = "storage" })},
		"strict about networks": {
			file: section("  networks: {missing: Refuse, inUse: Refuse}\n"),
			want: with(func(c *Configuration) {
				c.Longhorn.Networks = Networks{Missing: settings.Refuse, InUse: settings.Refuse, Settle: settle, Gate: rollout.GateCluster}
			}),
		},
		"some duties": {
			file: section("  duties: {settings: guard, services: \"off\"}\n"),
			want: duties(Duties{Settings: Guard, Pods: On, Services: Off, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"bare on and off, which YAML reads as booleans": {
			file: section("  duties:\n    settings: off\n    pods: on\n    services: off\n    networks: off\n    volumeNetworks: off\n"),
			want: duties(Duties{Settings: Off, Pods: On, Services: Off, Networks: Off, VolumeNetworks: Off, Endpoints: Off, Workloads: Off, Remount: Off}),
		},
		"true and false": {
			file: section("  duties: {settings: guard, pods: true, services: false}\n"),
			want: duties(Duties{Settings: Guard, Pods: On, Services: Off, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"settings apply needs pods and services": {
			file:    section("  duties: {pods: off}\n"),
			problem: `longhorn.duties.settings: Invalid value: "apply": settings: apply needs pods: on and services: on; switch them on, or write settings: guard`,
		},
		"no networks of single volumes": {
			file: section("  duties: {volumeNetworks: off}\n"),
			want: duties(Duties{Settings: Apply, Pods: On, Services: On, Networks: On, VolumeNetworks: Off, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"a settle time of its own": {
			file: section("  networks: {settle: 2m}\n"),
			want: with(func(c *Configuration) { c.Longhorn.Networks.Settle = metav1.Duration{Duration: 2 * time.Minute} }),
		},
		"the gate of nodes": {file: section("  networks: {gate: node}\n"), want: with(func(c *Configuration) { c.Longhorn.Networks.Gate = rollout.GateNode })},
		"no other gate":     {file: section("  networks: {gate: none}\n"), problem: `longhorn.networks.gate: Unsupported value: "none": supported values: "cluster", "node"`},
		"maintenance windows": {
			file: section("  maintenanceWindows:\n  - days: [Sat, sun]\n    start: \"22:00\"\n    length: 4h\n    timeZone: Europe/Berlin\n"),
			want: with(func(c *Configuration) {
				c.Longhorn.MaintenanceWindows = []MaintenanceWindow{{Days: []string{"Sat", "sun"}, Start: "22:00", Length: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Berlin"}}
			}),
		},
		"maintenance windows that never open": {
			file: section("  maintenanceWindows:\n  - days: [Someday]\n    start: \"25:00\"\n    length: 0s\n    timeZone: Nowhere\n"),
			problem: `[longhorn.maintenanceWindows[0].days[0]: Unsupported value: "Someday": supported values: "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", ` +
				`longhorn.maintenanceWindows[0].start: Invalid value: "25:00": must be a time of day, for example 22:00, ` +
				`longhorn.maintenanceWindows[0].length: Invalid value: "0s": must be from 1m to 168h, ` +
				`longhorn.maintenanceWindows[0].timeZone: Invalid value: "Nowhere": must be a name of the IANA time zone database, for example Europe/Berlin: unknown time zone Nowhere]`,
		},
		"a share of workloads of its own":  {file: section("  workloads: {maxPercent: 20}\n"), want: with(func(c *Configuration) { c.Longhorn.Workloads.MaxPercent = 20 })},
		"no share below one percent":       {file: section("  workloads: {maxPercent: -1}\n"), problem: "longhorn.workloads.maxPercent: Invalid value: -1: must be from 1 to 100"},
		"no share above all":               {file: section("  workloads: {maxPercent: 101}\n"), problem: "longhorn.workloads.maxPercent: Invalid value: 101: must be from 1 to 100"},
		"no negative settle time":          {file: section("  networks: {settle: -1s}\n"), problem: `longhorn.networks.settle: Invalid value: "-1s": must not be negative`},
		"a duty left empty is the default": {file: section("  duties:\n    settings:\n    pods: null\n"), want: defaults()},
		"a bare on is no way to judge settings": {
			file:    section("  duties: {settings: on}\n"),
			problem: `longhorn.duties.settings: Unsupported value: "on": supported values: "apply", "guard", "off"`,
		},
		"a switch of another type": {
			file:    section("  duties: {pods: 1}\n"),
			problem: "reading YAML: error unmarshaling JSON: while decoding JSON: a switch is a word: json: cannot unmarshal number into Go value of type string",
		},
		"empty file":      {problem: `got apiVersion "", kind "": want apiVersion: config.fairlead.io/v1alpha1, kind: Configuration`},
		"another version": {file: "apiVersion: config.fairlead.io/v1\nkind: Configuration\n", problem: `got apiVersion "config.fairlead.io/v1", kind "Configuration": want apiVersion: config.fairlead.io/v1alpha1, kind: Configuration`},
		"fencing alone needs no Longhorn": {
			file: head + "fencing:\n  profiles:\n  - name: rook-ceph\n    mode: guard\n    clientRanges: [192.168.20.0/24]\n  cephClients: {mode: off}\n",
			want: with(func(c *Configuration) {
				c.Longhorn = nil
				c.Fencing.Profiles = []FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: Guard, ClientRanges: []string{"192.168.20.0/24"}}}
			}),
		},
		"all problems of fencing at once": {
			file: head + "fencing:\n  maxAge: -1s\n  tainting: {mode: apply, maxPercent: 101, nodeSelector: \"a b\"}\n  profiles:\n  - name: rook\n    namespace: rook\n    mode: maybe\n    network: a/b/c\n    clientRanges: [10.0.0.1]\n",
			problem: `[fencing.maxAge: Invalid value: "-1s": must not be negative, ` +
				`fencing.tainting.mode: Unsupported value: "apply": supported values: "off", "dryRun", "on", ` +
				`fencing.tainting.maxPercent: Invalid value: 101: must be from 1 to 100, ` +
				`fencing.tainting.nodeSelector: Invalid value: "a b": unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt, ` +
				`fencing.profiles[0].name: Unsupported value: "rook": supported values: "rook-ceph", ` +
				`fencing.profiles[0].mode: Unsupported value: "maybe": supported values: "fence", "guard", "off", ` +
				`fencing.profiles[0].network: Invalid value: "a/b/c": must be <namespace>/<NetworkAttachmentDefinition>: name "b/c" is not a DNS name, ` +
				`fencing.profiles[0].clientRanges[0]: Invalid value: "10.0.0.1": must be a range in CIDR form, like 192.168.20.0/24]`,
		},
		"asking Ceph": {
			file: head + "fencing:\n  cephClients: {mode: crossCheck}\n  profiles:\n  - {name: rook-ceph, namespace: storage}\n",
			want: with(func(c *Configuration) {
				c.Longhorn = nil
				c.Fencing.Profiles = []FencingProfile{{Name: "rook-ceph", Namespace: "storage", Mode: Fence}}
				c.Fencing.CephClients = CephClients{Mode: CrossCheck, ClusterID: "storage", URL: "https://fairlead-ceph-clients.fairlead-system.svc:9445"}
			}),
		},
		"asking another Ceph elsewhere": {
			file: head + "fencing:\n  cephClients: {mode: crossCheck, clusterID: 4b7f, url: \"https://ceph.example:1\"}\n  profiles:\n  - name: rook-ceph\n",
			want: with(func(c *Configuration) {
				c.Longhorn = nil
				c.Fencing.Profiles = []FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: Fence}}
				c.Fencing.CephClients = CephClients{Mode: CrossCheck, ClusterID: "4b7f", URL: "https://ceph.example:1"}
			}),
		},
		"asking Ceph without TLS, or in another way": {
			file: head + "fencing:\n  cephClients: {mode: source, url: \"http://ceph.example\"}\n",
			problem: `[fencing.cephClients.mode: Unsupported value: "source": supported values: "off", "crossCheck", ` +
				`fencing.cephClients.url: Invalid value: "http://ceph.example": must be https:// and a host]`,
		},
		"ranges of one storage cluster": {
			file: head + "fencing:\n  profiles:\n  - name: rook-ceph\n    clusters:\n    - {clusterID: external, clientRanges: [10.1.0.0/16, \"fd00::/8\"]}\n",
			want: with(func(c *Configuration) {
				c.Longhorn = nil
				c.Fencing.Profiles = []FencingProfile{{Name: "rook-ceph", Namespace: "rook-ceph", Mode: Fence,
					Clusters: []FencingCluster{{ClusterID: "external", ClientRanges: []string{"10.1.0.0/16", "fd00::/8"}}}}}
			}),
		},
		"all problems of storage clusters at once": {
			file: head + "fencing:\n  profiles:\n  - name: rook-ceph\n    clusters:\n    - {clusterID: a, clientRanges: [10.0.0.1]}\n    - {clusterID: a, clientRanges: [10.0.0.0/8]}\n    - {clientRanges: []}\n",
			problem: `[fencing.profiles[0].clusters[0].clientRanges[0]: Invalid value: "10.0.0.1": must be a range in CIDR form, like 192.168.20.0/24, ` +
				`fencing.profiles[0].clusters[1].clusterID: Duplicate value: "a", ` +
				`fencing.profiles[0].clusters[2].clusterID: Required value: the clusterID of the storage cluster's volumes, ` +
				`fencing.profiles[0].clusters[2].clientRanges: Required value: the ranges of the addresses of this Kubernetes cluster's clients in the storage cluster]`,
		},
		"an unknown field": {file: head + "clusterDomian: x\n", problem: `reading YAML: unknown field "clusterDomian"`},
		"an unknown field and wrong values": {file: section("  networks: {gate: nod, setle: 3s}\n"), problem: "reading YAML: unknown field \"longhorn.networks.setle\"\n" +
			`longhorn.networks.gate: Unsupported value: "nod": supported values: "cluster", "node"`},
		"an unknown duty": {file: section("  duties: {pod: on}\n"), problem: `reading YAML: unknown field "longhorn.duties.pod"`},
		"a field twice":   {file: head + "kind: Configuration\n", problem: "reading YAML: yaml: unmarshal errors:\n  line 3: key \"kind\" already set in map"},
		"all problems at once, with their paths": {
			file: head + "clusterDomain: Not_A_Domain\nlonghorn:\n  namespace: A B\n  networks: {missing: warn, inUse: Never}\n  duties: {settings: maybe, pods: apply}\n",
			problem: `[clusterDomain: Invalid value: "Not_A_Domain": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), ` +
				`longhorn.namespace: Invalid value: "A B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), ` +
				`longhorn.duties.settings: Unsupported value: "maybe": supported values: "apply", "guard", "off", ` +
				`longhorn.duties.pods: Unsupported value: "apply": supported values: "on", "off", ` +
				`longhorn.networks.missing: Unsupported value: "warn": supported values: "Warn", "Refuse", ` +
				`longhorn.networks.inUse: Unsupported value: "Never": supported values: "Warn", "Refuse"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.file))
			if test.problem != "" {
				must.True(t, err != nil && err.Error() == test.problem, "got  %v\nwant %s", err, test.problem)
				return
			}
			test.want.NFS.setDefaults() // has tests of its own
			must.True(t, err == nil && reflect.DeepEqual(got, test.want), "got  %+v, %v\nwant %+v", got, err, test.want)
		})
	}
}

func TestNamesAreInConfiguredNamespace(t *testing.T) {
	want := longhorn.DefaultNames()
	want.Namespace = "storage"
	must.Equal(t, (&Longhorn{Namespace: "storage"}).Names(), want)
}

func TestPerVolumeNetworksAreListed(t *testing.T) {
	c, err := Parse([]byte(head + "longhorn: {networks: {perVolume: [team-x/nfs]}}\n"))
	must.Do(t, err)
	must.Equal(t, c.Longhorn.Names().VolumeNetworks.Networks, []multus.Network{{Namespace: "team-x", Name: "nfs"}})
	must.Equal(t, len(defaults().Longhorn.Names().VolumeNetworks.Networks), 0)
	_, err = Parse([]byte(head + "longhorn: {networks: {perVolume: [nfs, '']}}\n"))
	must.True(t, err != nil && strings.Contains(err.Error(), `longhorn.networks.perVolume[0]: Invalid value: "nfs"`) && strings.Contains(err.Error(), "longhorn.networks.perVolume[1]: Required value"), "got %v", err)
}

func TestFixedAddressesAreGranted(t *testing.T) {
	c, err := Parse([]byte(head + `longhorn: {networks: {fixedAddresses: [{network: team-x/nfs, namespaces: [team-x], ranges: [192.168.60.8/29, "fd00:60::/64"], macPrefixes: ["02:00:00:00:6A"]}, {ranges: [10.0.0.0/8]}]}}` + "\n"))
	must.Do(t, err)
	must.Equal(t, c.Longhorn.Names().VolumeNetworks.Addresses, []rwx.AddressGrant{
		{Network: multus.Network{Namespace: "team-x", Name: "nfs"}, Namespaces: []string{"team-x"}, Ranges: []netip.Prefix{netip.MustParsePrefix("192.168.60.8/29"), netip.MustParsePrefix("fd00:60::/64")}, MACPrefixes: []string{"02:00:00:00:6a"}},
		{Ranges: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
	})
	for text, want := range map[string]string{
		"{network: nfs, ranges: [10.0.0.0/8]}":        `longhorn.networks.fixedAddresses[0].network: Invalid value: "nfs"`,
		"{namespaces: [A], ranges: [10.0.0.0/8]}":     `fixedAddresses[0].namespaces[0]: Invalid value: "A"`,
		"{ranges: [10.0.0.1/8]}":                      `fixedAddresses[0].ranges[0]: Invalid value: "10.0.0.1/8": has host bits: write 10.0.0.0/8`,
		"{ranges: [10.0.0.1]}":                        `fixedAddresses[0].ranges[0]: Invalid value: "10.0.0.1"`,
		"{macPrefixes: [02:00:00:00:00:01:02]}":       `fixedAddresses[0].macPrefixes[0]: Invalid value: "02:00:00:00:00:01:02": must be a unicast MAC address`,
		"{macPrefixes: [x]}":                          `fixedAddresses[0].macPrefixes[0]: Invalid value: "x"`,
		"{network: team-x/nfs, namespaces: [team-x]}": "fixedAddresses[0].ranges: Required value: give ranges, macPrefixes or both",
	} {
		t.Run(text, func(t *testing.T) {
			_, err := Parse([]byte(head + "longhorn: {networks: {fixedAddresses: [" + text + "]}}\n"))
			must.True(t, err != nil && strings.Contains(err.Error(), want), "got %v", err)
		})
	}
}

// An accepted configuration is complete, and reads back the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", head, head + "clusterDomain: corp.example.\n", head + "longhorn: {duties: {pods: off, settings: guard}}\n",
		head + "longhorn: {networks: {missing: Refuse}}\n", head + "profiles: [null]\n", head + "longhorn:\n", "a: &a [*a]", "\xff", head + "longhorn:\n  duties:\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		must.True(t, c.ClusterDomain != "", "incomplete: %+v", c)
		if l := c.Longhorn; l != nil {
			must.True(t, l.Namespace != "" && l.Duties.Settings != "" && l.Duties.Pods != "" && l.Networks.Missing != "" && l.Networks.InUse != "" && l.Names().Namespace == l.Namespace, "incomplete: %+v", l)
		}
		written, err := yaml.Marshal(c)
		must.Do(t, err)
		again, err := Parse(written)
		must.True(t, err == nil && reflect.DeepEqual(c, again), "%+v reads back as %+v, %v", c, again, err)
	})
}

func TestLonghornIsDefaultOnlyAlone(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "nfs: {statd: on}": true, "nfs: {drivers: [{name: nfs.fairlead.io}]}": false, "fencing: {profiles: [{name: rook-ceph}]}": false,
		"nfs: {drivers: [{name: nfs.fairlead.io}]}\nlonghorn: {}": true, "nfs: {drivers: [{name: nfs.fairlead.io}]}\nlonghorn:": true,
	} {
		c, err := Parse([]byte(head + text))
		must.True(t, err == nil && (c.Longhorn != nil) == want, "%q: %v, %v; want Longhorn: %t", text, c, err, want)
	}
}

// Manifests have the configuration in a ConfigMap.
func TestConfigurationIsReadFromAConfigMap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fairlead.yaml")
	must.Do(t, os.WriteFile(path, []byte("apiVersion: v1\nkind: ConfigMap\ndata:\n  configuration.yaml: |\n    apiVersion: config.fairlead.io/v1alpha1\n    kind: Configuration\n    clusterDomain: example.org\n"), 0o600))
	c, err := Load(path)
	must.Do(t, err)
	must.Equal(t, c.ClusterDomain, "example.org")
}
