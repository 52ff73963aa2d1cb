package config

import (
	"errors"
	"io/fs"
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
		Networks:      Networks{Missing: settings.Warn, InUse: settings.Warn, Settle: settle, Gate: rollout.GateCluster},
		Workloads:     Workloads{MaxPercent: 100},
		Fencing:       noFencing(),
		NFS:           NFS{Mode: On, Statd: Off, Drivers: []NFSDriver{{Name: "nfs.fairlead.io", NodeAnnotations: NodeAnnotationsOff}}},
		Profiles:      []Profile{{Name: "longhorn", Namespace: "longhorn-system", Duties: Duties{Settings: Apply, Pods: On, Services: On, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off}}},
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
	duties := func(d Duties) *Configuration { return with(func(c *Configuration) { c.Profiles[0].Duties = d }) }
	profile := func(lines string) string { return head + "profiles:\n- name: longhorn\n" + lines }
	for name, test := range map[string]struct {
		file    string
		want    *Configuration
		problem string
	}{
		"nothing but its kind": {file: head, want: defaults()},
		"JSON is YAML":         {file: `{"apiVersion": "config.fairlead.io/v1alpha1", "kind": "Configuration"}`, want: defaults()},
		"another namespace":    {file: profile("  namespace: storage\n"), want: with(func(c *Configuration) { c.Profiles[0].Namespace = "storage" })},
		"strict about networks": {
			file: head + "networks: {missing: Refuse, inUse: Refuse}\n",
			want: with(func(c *Configuration) {
				c.Networks = Networks{Missing: settings.Refuse, InUse: settings.Refuse, Settle: settle, Gate: rollout.GateCluster}
			}),
		},
		"some duties": {
			file: profile("  duties: {settings: guard, services: \"off\"}\n"),
			want: duties(Duties{Settings: Guard, Pods: On, Services: Off, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"bare on and off, which YAML reads as booleans": {
			file: profile("  duties:\n    settings: off\n    pods: on\n    services: off\n    networks: off\n    volumeNetworks: off\n"),
			want: duties(Duties{Settings: Off, Pods: On, Services: Off, Networks: Off, VolumeNetworks: Off, Endpoints: Off, Workloads: Off, Remount: Off}),
		},
		"true and false": {
			file: profile("  duties: {settings: guard, pods: true, services: false}\n"),
			want: duties(Duties{Settings: Guard, Pods: On, Services: Off, Networks: On, VolumeNetworks: On, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"settings apply needs pods and services": {
			file:    profile("  duties: {pods: off}\n"),
			problem: `profiles[0].duties.settings: Invalid value: "apply": settings: apply needs pods: on and services: on; switch them on, or write settings: guard`,
		},
		"no networks of single volumes": {
			file: profile("  duties: {volumeNetworks: off}\n"),
			want: duties(Duties{Settings: Apply, Pods: On, Services: On, Networks: On, VolumeNetworks: Off, Endpoints: On, Workloads: On, Remount: Off}),
		},
		"a settle time of its own": {
			file: head + "networks: {settle: 2m}\n",
			want: with(func(c *Configuration) { c.Networks.Settle = metav1.Duration{Duration: 2 * time.Minute} }),
		},
		"the gate of nodes": {file: head + "networks: {gate: node}\n", want: with(func(c *Configuration) { c.Networks.Gate = rollout.GateNode })},
		"no other gate":     {file: head + "networks: {gate: none}\n", problem: `networks.gate: Unsupported value: "none": supported values: "cluster", "node"`},
		"maintenance windows": {
			file: head + "maintenanceWindows:\n- days: [Sat, sun]\n  start: \"22:00\"\n  length: 4h\n  timeZone: Europe/Berlin\n",
			want: with(func(c *Configuration) {
				c.MaintenanceWindows = []MaintenanceWindow{{Days: []string{"Sat", "sun"}, Start: "22:00", Length: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Berlin"}}
			}),
		},
		"maintenance windows that never open": {
			file: head + "maintenanceWindows:\n- days: [Someday]\n  start: \"25:00\"\n  length: 0s\n  timeZone: Nowhere\n",
			problem: `[maintenanceWindows[0].days[0]: Unsupported value: "Someday": supported values: "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", ` +
				`maintenanceWindows[0].start: Invalid value: "25:00": must be a time of day, for example 22:00, ` +
				`maintenanceWindows[0].length: Invalid value: "0s": must be from 1m to 168h, ` +
				`maintenanceWindows[0].timeZone: Invalid value: "Nowhere": must be a name of the IANA time zone database, for example Europe/Berlin: unknown time zone Nowhere]`,
		},
		"a share of workloads of its own":  {file: head + "workloads: {maxPercent: 20}\n", want: with(func(c *Configuration) { c.Workloads.MaxPercent = 20 })},
		"no share below one percent":       {file: head + "workloads: {maxPercent: -1}\n", problem: "workloads.maxPercent: Invalid value: -1: must be from 1 to 100"},
		"no share above all":               {file: head + "workloads: {maxPercent: 101}\n", problem: "workloads.maxPercent: Invalid value: 101: must be from 1 to 100"},
		"no negative settle time":          {file: head + "networks: {settle: -1s}\n", problem: `networks.settle: Invalid value: "-1s": must not be negative`},
		"a duty left empty is the default": {file: profile("  duties:\n    settings:\n    pods: null\n"), want: defaults()},
		"a bare on is no way to judge settings": {
			file:    profile("  duties: {settings: on}\n"),
			problem: `profiles[0].duties.settings: Unsupported value: "on": supported values: "apply", "guard", "off"`,
		},
		"a switch of another type": {
			file:    profile("  duties: {pods: 1}\n"),
			problem: "reading YAML: error unmarshaling JSON: while decoding JSON: a switch is a word: json: cannot unmarshal number into Go value of type string",
		},
		"empty file":      {problem: `got apiVersion "", kind "": want apiVersion: config.fairlead.io/v1alpha1, kind: Configuration`},
		"another version": {file: "apiVersion: config.fairlead.io/v1\nkind: Configuration\n", problem: `got apiVersion "config.fairlead.io/v1", kind "Configuration": want apiVersion: config.fairlead.io/v1alpha1, kind: Configuration`},
		"fencing alone needs no Longhorn": {
			file: head + "fencing:\n  profiles:\n  - name: rook-ceph\n    mode: guard\n    clientRanges: [192.168.20.0/24]\n  cephClients: {mode: off}\n",
			want: with(func(c *Configuration) {
				c.Profiles = nil
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
				c.Profiles = nil
				c.Fencing.Profiles = []FencingProfile{{Name: "rook-ceph", Namespace: "storage", Mode: Fence}}
				c.Fencing.CephClients = CephClients{Mode: CrossCheck, ClusterID: "storage", URL: "https://fairlead-ceph-clients.fairlead-system.svc:9445"}
			}),
		},
		"asking another Ceph elsewhere": {
			file: head + "fencing:\n  cephClients: {mode: crossCheck, clusterID: 4b7f, url: \"https://ceph.example:1\"}\n  profiles:\n  - name: rook-ceph\n",
			want: with(func(c *Configuration) {
				c.Profiles = nil
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
				c.Profiles = nil
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
		"an unknown field and wrong values": {file: head + "networks: {gate: nod, setle: 3s}\nprofiles: [{name: ceph}]\n", problem: "reading YAML: unknown field \"networks.setle\"\n" +
			`[networks.gate: Unsupported value: "nod": supported values: "cluster", "node", profiles[0].name: Unsupported value: "ceph": supported values: "longhorn"]`},
		"an unknown duty": {file: profile("  duties: {pod: on}\n"), problem: `reading YAML: unknown field "profiles[0].duties.pod"`},
		"a field twice":   {file: head + "kind: Configuration\n", problem: "reading YAML: yaml: unmarshal errors:\n  line 3: key \"kind\" already set in map"},
		"all problems at once, with their paths": {
			file: head + "clusterDomain: Not_A_Domain\nnetworks: {missing: warn, inUse: Never}\n" +
				"profiles:\n- name: longhorn\n  namespace: A B\n- name: ceph\n  namespace: rook\n  duties: {settings: maybe, pods: apply}\n- name: longhorn\n",
			problem: `[clusterDomain: Invalid value: "Not_A_Domain": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), ` +
				`networks.missing: Unsupported value: "warn": supported values: "Warn", "Refuse", ` +
				`networks.inUse: Unsupported value: "Never": supported values: "Warn", "Refuse", ` +
				`profiles[0].namespace: Invalid value: "A B": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?'), ` +
				`profiles[1].name: Unsupported value: "ceph": supported values: "longhorn", ` +
				`profiles[1].duties.settings: Unsupported value: "maybe": supported values: "apply", "guard", "off", ` +
				`profiles[1].duties.pods: Unsupported value: "apply": supported values: "on", "off", ` +
				`profiles[2].name: Duplicate value: "longhorn"]`,
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

func TestStorageUsesConfiguredNamespace(t *testing.T) {
	want := longhorn.DefaultNames()
	want.Namespace = "storage"
	must.Equal(t, (Profile{Name: "longhorn", Namespace: "storage"}).Storage(), want)
}

func TestPerVolumeNetworksAreListed(t *testing.T) {
	c, err := Parse([]byte(head + "networks: {perVolume: [team-x/nfs]}\n"))
	must.Do(t, err)
	must.Equal(t, c.Profiles[0].Storage().VolumeNetworks, []multus.Network{{Namespace: "team-x", Name: "nfs"}})
	must.Equal(t, len(defaults().Profiles[0].Storage().VolumeNetworks), 0)
	_, err = Parse([]byte(head + "networks: {perVolume: [nfs, '']}\n"))
	must.True(t, err != nil && strings.Contains(err.Error(), `networks.perVolume[0]: Invalid value: "nfs"`) && strings.Contains(err.Error(), "networks.perVolume[1]: Required value"), "got %v", err)
}

// An accepted configuration is complete, and reads back the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", head, head + "clusterDomain: corp.example.\n", head + "profiles: [{name: longhorn, duties: {pods: off, settings: guard}}]\n",
		head + "networks: {missing: Refuse}\n", head + "profiles: [null]\n", "a: &a [*a]", "\xff", head + "profiles:\n- name: longhorn\n  duties:\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse(data)
		if err != nil {
			return
		}
		must.True(t, c.ClusterDomain != "" && len(c.Profiles) != 0 && c.Networks.Missing != "" && c.Networks.InUse != "", "incomplete: %+v", c)
		for _, p := range c.Profiles {
			must.True(t, p.Name != "" && p.Namespace != "" && p.Duties.Settings != "" && p.Duties.Pods != "" && p.Storage().Namespace == p.Namespace, "incomplete: %+v", p)
		}
		written, err := yaml.Marshal(c)
		must.Do(t, err)
		again, err := Parse(written)
		must.True(t, err == nil && reflect.DeepEqual(c, again), "%+v reads back as %+v, %v", c, again, err)
	})
}

func TestLonghornIsDefaultOnlyAlone(t *testing.T) {
	for text, want := range map[string]int{
		"": 1, "nfs: {statd: on}": 1, "nfs: {drivers: [{name: nfs.fairlead.io}]}": 0, "fencing: {profiles: [{name: rook-ceph}]}": 0,
		"nfs: {drivers: [{name: nfs.fairlead.io}]}\nprofiles: [{name: longhorn}]": 1,
	} {
		c, err := Parse([]byte("apiVersion: " + APIVersion + "\nkind: " + Kind + "\n" + text))
		must.True(t, err == nil && len(c.Profiles) == want, "%q: %v, %v; want %d profiles", text, c, err, want)
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
