package validators

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/plan"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	storageNet = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	backupNet  = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "backup-net"}, Interface: "lhnet2"}
)

// quiet are the facts of a cluster with two networks, none in use and nothing attached.
func quiet() SettingFacts {
	return SettingFacts{
		Facts: plan.Facts{Profile: storage.Longhorn(), OwnValues: map[catalog.Name]string{}, SystemValues: map[catalog.Name]string{}, Rollout: rollout.Rollout{
			DaemonSet: rollout.DaemonSet{Name: "csi", Found: true}, Clients: make([]storage.Client, 3),
		}},
		Applies: true, MissingPolicy: Warn,
		Networks: []storage.Network{storageNet.Network, backupNet.Network}, NetworksKnown: true,
	}
}

type values = map[catalog.Name]string

var webVolume = storage.Volume{Name: "pvc-117d3553", Shared: true, Attached: true, Nodes: []string{"node-2"}, Workloads: []string{"default/web-0"}}

const (
	rolling    = "accepted; no RWX volume is attached, so it is applied now: 3 CSI plugin pods restart"
	pending    = "accepted; will be applied when these RWX volumes are detached: pvc-117d3553 (node-2, pod default/web-0). Then 3 CSI plugin pods restart."
	inCluster  = "(in this cluster: kube-system/backup-net, kube-system/storage-net)"
	notANet    = "must be <namespace>/<NetworkAttachmentDefinition>"
	orCluster  = `, or "" for the cluster network`
	enabledFor = "storage-network-for-rwx-volume-enabled"
)

func everyName() string {
	var names []string
	for _, d := range catalog.All() {
		names = append(names, fmt.Sprintf("%q", d.Name))
	}
	return strings.Join(names, ", ")
}

// TestSetting has what is beside the table of setting_table_test.go: clusters
// without Multus or without networks, spellings, and values of before.
func TestSetting(t *testing.T) {
	for name, test := range map[string]struct {
		setting  catalog.Name
		value    string
		but      func(*SettingFacts)
		reason   string
		problems []string
		warnings []string
	}{
		// The "How it should feel".
		"not a network": {
			setting: catalog.StorageNetwork, value: "kube-system", reason: ReasonInvalidValue,
			problems: []string{`value: Invalid value: "kube-system": must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
		},
		"node by node": {
			setting: catalog.StorageNetworkForRWX, value: "true", reason: ReasonApplies,
			but: func(f *SettingFacts) {
				f.Own, f.SystemValues, f.Volumes = true, values{catalog.StorageNetwork: "kube-system/storage-net"}, []storage.Volume{webVolume}
				f.Rollout.Gate = rollout.GateNode
			},
			warnings: []string{"accepted; applied node by node: 3 CSI plugin pods restart, each when no RWX volume is attached on its node"},
		},
		"pending": {
			setting: catalog.StorageNetworkForRWX, value: "true", reason: ReasonPending,
			but: func(f *SettingFacts) {
				f.Own, f.SystemValues, f.Volumes = true, values{catalog.StorageNetwork: "kube-system/storage-net"}, []storage.Volume{webVolume}
			},
			warnings: []string{pending},
		},

		"applied now": {
			setting: catalog.StorageNetworkForRWX, value: "true", reason: ReasonApplies,
			but:      func(f *SettingFacts) { f.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"} },
			warnings: []string{rolling},
		},
		"applied now: RWO and migratable volumes don't count": {
			setting: catalog.EndpointNetworkForRWX, value: "kube-system/backup-net", reason: ReasonApplies,
			but:      func(f *SettingFacts) { f.Volumes = []storage.Volume{{Name: "rwo", Attached: true}} },
			warnings: []string{rolling},
		},
		"breaks out of JSON": {
			setting: catalog.StorageNetwork, value: `ns/x"y`, reason: ReasonInvalidValue,
			problems: []string{`value: Invalid value: "ns/x\"y": ` + notANet + `: name "x\"y" is not a DNS name ` + inCluster + orCluster},
		},
		"not a network, and the cluster has none": {
			setting: catalog.StorageNetwork, value: "x", reason: ReasonInvalidValue,
			but:      func(f *SettingFacts) { f.Networks = nil },
			problems: []string{`value: Invalid value: "x": ` + notANet + ` (this cluster has none yet)` + orCluster},
		},
		"not a network, and the cluster has no Multus": {
			setting: catalog.StorageNetwork, value: "x", reason: ReasonInvalidValue,
			but:      func(f *SettingFacts) { f.Networks, f.NetworksKnown = nil, false },
			problems: []string{`value: Invalid value: "x": ` + notANet + orCluster},
		},
		"not a network, and the cluster has many": {
			setting: catalog.StorageNetwork, value: "x", reason: ReasonInvalidValue,
			but: func(f *SettingFacts) {
				f.Networks = nil
				for i := range 10 {
					f.Networks = append(f.Networks, storage.Network{Namespace: "ns", Name: fmt.Sprint(9 - i)})
				}
			},
			problems: []string{`value: Invalid value: "x": ` + notANet + ` (in this cluster: ns/0, ns/1, ns/2, ns/3, ns/4, ns/5, ns/6, ns/7, and 2 more)` + orCluster},
		},
		"a switch is not empty": {
			setting: catalog.StorageNetworkForRWX, value: "", reason: ReasonInvalidValue,
			problems: []string{`value: Invalid value: "": must be "true" or "false"`},
		},
		"nothing but space": {
			setting: catalog.StorageNetwork, value: "\t", reason: ReasonInvalidValue,
			problems: []string{`value: Invalid value: "\t": must not have space around it; write ""`},
		},
		"space around a switch": {
			setting: catalog.StorageNetworkForRWX, value: "true\n", reason: ReasonInvalidValue,
			problems: []string{`value: Invalid value: "true\n": must not have space around it; write "true"`},
		},

		"no such network, refused": {
			setting: catalog.EndpointNetworkForRWX, value: "kube-system/new", reason: ReasonNoSuchNetwork,
			but:      func(f *SettingFacts) { f.MissingPolicy = Refuse },
			problems: []string{`value: Invalid value: "kube-system/new": there is no NetworkAttachmentDefinition kube-system/new ` + inCluster + "; pods that ask for it do not start until it is created"},
		},
		"no such network, and nobody knows": {
			setting: catalog.StorageNetwork, value: "kube-system/new", reason: ReasonValid,
			but: func(f *SettingFacts) { f.MissingPolicy, f.NetworksKnown, f.Networks = Refuse, false, nil },
		},
		"the cluster network is always there": {
			setting: catalog.StorageNetwork, value: "", reason: ReasonValid,
			but: func(f *SettingFacts) { f.MissingPolicy, f.Networks = Refuse, nil },
		},

		"storage network while RWX is off": {setting: catalog.StorageNetwork, value: "kube-system/storage-net", reason: ReasonValid},
		"Fairlead's own says the same": {
			setting: catalog.StorageNetworkForRWX, value: "true", reason: ReasonValid,
			but: func(f *SettingFacts) {
				f.OwnValues = values{catalog.StorageNetworkForRWX: "true"}
				f.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"}
				f.Rollout.Record = rollout.Record{Clients: storageNet, Servers: storageNet}
			},
		},
		"back to what is recorded": {
			setting: catalog.StorageNetworkForRWX, value: "true", reason: ReasonValid,
			but: func(f *SettingFacts) {
				f.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"}
				f.Rollout.Record = rollout.Record{Clients: storageNet, Servers: storageNet}
				f.Volumes = []storage.Volume{webVolume}
			},
		},
		"correcting the value that was not well formed": {
			setting: catalog.StorageNetwork, value: "kube-system/storage-net", reason: ReasonApplies,
			but: func(f *SettingFacts) {
				f.SystemValues = values{catalog.StorageNetwork: "ns/", catalog.StorageNetworkForRWX: "true"}
			},
			warnings: []string{rolling},
		},

		"kinds that are none": {
			setting: catalog.AutoDeletePodBlacklist, value: "ReplicaSet", reason: ReasonInvalidValue, but: func(f *SettingFacts) { f.Own = true },
			problems: []string{`value: Invalid value: "ReplicaSet": must be <group>/<Kind> of controllers, separated by ";", like apps/StatefulSet;apps/DaemonSet, or "" for none`},
		},
		"no restart is announced for what is in force at once": {
			setting: catalog.AutoDeletePod, value: "false", reason: ReasonValid, but: func(f *SettingFacts) { f.Own = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := quiet()
			if test.but != nil {
				test.but(&facts)
			}
			var s Setting
			s.Metadata.Name, s.Value = string(test.setting), &test.value
			checkVerdict(t, ValidateSetting(s, nil, facts), test.reason, test.problems, test.warnings)
		})
	}
}

// Advice that is followed must not be refused in turn.
func TestAdviceOnSpaceIsItselfWellFormed(t *testing.T) {
	value := " kube-system "
	var s Setting
	s.Metadata.Name, s.Value = string(catalog.StorageNetwork), &value
	checkVerdict(t, ValidateSetting(s, nil, quiet()), ReasonInvalidValue,
		[]string{`value: Invalid value: " kube-system ": ` + notANet + " " + inCluster + orCluster}, nil)
}

func TestSettingDeletion(t *testing.T) {
	for name, test := range map[string]struct {
		setting  string
		but      func(*SettingFacts)
		reason   string
		problems []string
		warnings []string
	}{
		"the storage system's": {
			setting: "storage-network", reason: ReasonNotDeletable,
			problems: []string{`metadata.name: Forbidden: setting storage-network can be changed but not deleted; set its value to "", the default, instead`},
		},
		"the storage system's, of before its upgrade": {setting: enabledFor, reason: ReasonValid},
		"Fairlead's own, back to the default": {
			setting: enabledFor, reason: ReasonPending,
			but: func(f *SettingFacts) {
				f.Own, f.OwnValues = true, values{catalog.StorageNetworkForRWX: "true"}
				f.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"}
				f.Rollout.Record, f.Volumes = rollout.Record{Clients: storageNet, Servers: storageNet}, []storage.Volume{webVolume}
			},
			warnings: []string{`storage-network-for-rwx-volume-enabled is "false" from now on (the default)`, pending},
		},
		"Fairlead's own, the same value stays": {
			setting: enabledFor, reason: ReasonValid,
			but: func(f *SettingFacts) { f.Own, f.OwnValues = true, values{catalog.StorageNetworkForRWX: "false"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			facts := quiet()
			if test.but != nil {
				test.but(&facts)
			}
			checkVerdict(t, ValidateSettingDeletion(test.setting, facts), test.reason, test.problems, test.warnings)
		})
	}
}

func TestSettingRulesLeaveTheFactsAsTheyAre(t *testing.T) {
	facts, value := quiet(), "kube-system/backup-net"
	facts.Own, facts.OwnValues = true, values{catalog.EndpointNetworkForRWX: "kube-system/storage-net"}
	var s Setting
	s.Metadata.Name, s.Value = string(catalog.EndpointNetworkForRWX), &value
	before := quiet()
	before.Own, before.OwnValues = true, values{catalog.EndpointNetworkForRWX: "kube-system/storage-net"}
	ValidateSetting(s, nil, facts)
	ValidateSettingDeletion(s.Metadata.Name, facts)
	if !reflect.DeepEqual(facts, before) {
		t.Fatalf("got %+v", facts)
	}
}

// Attached volumes never make a well-formed value a refused one, and a refused
// one says why and nothing else.
func TestVolumesDelayAndNeverRefuse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "true", "false", "kube-system/storage-net", "kube-system/none"})).Draw(t, "value")
		var s Setting
		s.Metadata.Name, s.Value = string(rapid.SampledFrom(catalog.All()).Draw(t, "setting").Name), &value
		facts := quiet()
		facts.SystemValues = values{catalog.StorageNetwork: "kube-system/storage-net"}
		facts.Own = rapid.Bool().Draw(t, "own")
		free := ValidateSetting(s, nil, facts)
		facts.Volumes = []storage.Volume{webVolume}
		held := ValidateSetting(s, nil, facts)
		if !reflect.DeepEqual(free.Problems, held.Problems) {
			t.Fatalf("%s %q: %v with a volume attached, else %v", s.Metadata.Name, value, held.Problems, free.Problems)
		}
		if len(free.Problems) > 0 && len(free.Warnings) > 0 {
			t.Fatalf("%s %q: refused, and yet warned: %v", s.Metadata.Name, value, free.Warnings)
		}
	})
}

func checkVerdict(t *testing.T, got Verdict, reason string, problems, warnings []string) {
	t.Helper()
	var have []string
	for _, p := range got.Problems {
		have = append(have, p.Error())
	}
	if !slices.Equal(have, problems) {
		t.Errorf("problems: got\n%q\nwant\n%q", have, problems)
	}
	if !slices.Equal(got.Warnings, warnings) {
		t.Errorf("warnings: got\n%q\nwant\n%q", got.Warnings, warnings)
	}
	if got.Reason != reason {
		t.Errorf("reason: got %q, want %q", got.Reason, reason)
	}
}
