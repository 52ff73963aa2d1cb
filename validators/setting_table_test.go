package validators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/planner"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Groups of settings.
const (
	own    = "settings.fairlead.io"
	system = "settings.longhorn.io"
)

// Warnings of accepted changes: what restarts now, and what the rest waits for.
const (
	clientsRestart    = "accepted; being applied now: 3 CSI plugin pods restart"
	clientsWait       = "accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart."
	clientsByNode     = "accepted; being applied node by node: 2 CSI plugin pods restart now, then 1 CSI plugin pod restarts when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0)"
	clientsOnHost     = "accepted; waiting: DaemonSet longhorn-csi-plugin is on the host network, where Multus adds no interface: set hostNetwork to false. Then 3 CSI plugin pods restart."
	allRestart        = "accepted; being applied now: 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 6 instance managers restart one by one"
	allWait           = "accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"
	allWaitForV2      = "accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-2 (node-3, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 1 instance manager restart"
	networkRestarts   = "accepted; being applied now: 1 backing image manager and 6 instance managers restart one by one"
	networkWaits      = "accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 1 backing image manager and 2 instance managers restart"
	networkDetaching  = "accepted; 1 backing image manager and 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-2-e-0 (node-1). Then 2 instance managers restart"
	oneEngineRestarts = "accepted; being applied now: 3 instance managers restart one by one"
	v1Waits           = "accepted; 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart one by one"
	v2Waits           = "accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"
	oneEngineRemoved  = "accepted; being applied now: 3 instance managers are removed"
	v1RemovalWaits    = "accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1). Then 1 instance manager is removed"
	v2RemovalWaits    = "accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-1). Then 1 instance manager is removed"
	enginesRestart    = "accepted; being applied now: 6 instance managers restart one by one"
	enginesWait       = "accepted; 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart"
	engineImagesRoll  = "accepted; being applied now: 1 DaemonSet rolls"
	csiPluginRolls    = engineImagesRoll + "; CSI plugin pods restart each when no RWX volume is attached on its node"
	oneNodeMatches    = "accepted; 1 backing image manager and 2 instance managers restart one by one now; waiting: no node accepts pods of csi-attacher (on node-1: the node has taint dedicated=storage:NoSchedule: remove the taint, or change taint-toleration). Then 4 Deployments and 2 DaemonSets roll"
	noNodeMatches     = `accepted; waiting: no node has the labels "rack:z": label nodes, or change system-managed-components-node-selector. Then 4 Deployments and 2 DaemonSets roll`
	kept              = "storage-network still waits for 2 instance managers in use: the change restarts none of them, since Fairlead's webhook stops longhorn from deleting their pods"
	nodesGone         = "accepted; 4 Deployments and 2 DaemonSets roll now; waiting: backing image manager backing-image-manager-1 on node-1 is on a node that was deleted: wait until the pod is removed, and 6 more. Then 1 backing image manager and 6 instance managers restart one by one"
	malformedEndpoint = `not applied until the value is corrected: invalid value of setting endpoint-network-for-rwx-volume: value "ns/" must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`
	malformed         = `not applied until the value is corrected: invalid value of setting storage-network: value "ns/" must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`
)

// Details of problems.
const (
	inCluster      = " (in this cluster: kube-system/backup-net, kube-system/storage-net)"
	noSuchNetwork  = "there is no NetworkAttachmentDefinition kube-system/new" + inCluster + "; pods that request the network do not start until you create it"
	notANetwork    = "must be <namespace>/<NetworkAttachmentDefinition>"
	orCluster      = `, or "" for the cluster network`
	notASwitch     = `must be "true" or "false"`
	notASwitchOfV2 = notASwitch + `, or one for each data engine as {"v2":"true"}`
	probeRange     = "must be a whole number from 1 to 60"
	manyAttachedV1 = "value: Forbidden: the v1 data engine can't be switched off while 10 of its volumes are attached: pvc-00 (node-1, pod default/db-0), pvc-01 (node-2, pod default/db-0), pvc-02 (node-3, pod default/db-0), and 7 more; stop the workloads that use the volumes, then try again"
)

// forRWX is the effect on RWX volumes of a setting that has other effects too.
func forRWX(effect string) string {
	return "accepted; for RWX volumes: " + strings.TrimPrefix(effect, "accepted; ")
}

// settingRow is a change of a setting, and its verdict word by word.
type settingRow struct {
	setting, group, value string
	in                    situation
	reason                string
	problems, warnings    []string
}

func accepted(reason, value string, in situation, warnings []string) settingRow {
	return settingRow{value: value, in: in, reason: reason, warnings: warnings}
}

// applies is a row that is accepted and begins now.
func applies(value string, in situation, warnings ...string) settingRow {
	return accepted(ReasonApplies, value, in, warnings)
}

// waits is a row that is accepted and waits for something.
func waits(value string, in situation, warnings ...string) settingRow {
	return accepted(ReasonPending, value, in, warnings)
}

// valid is a row that is accepted and applies nothing.
func valid(value string, in situation, warnings ...string) settingRow {
	return accepted(ReasonValid, value, in, warnings)
}

func refused(reason, value string, in situation, problem string) settingRow {
	return settingRow{value: value, in: in, reason: reason, problems: []string{problem}}
}

func invalid(value string, in situation, detail string) settingRow {
	return refused(ReasonInvalidValue, value, in, fmt.Sprintf("value: Invalid value: %q: %s", value, detail))
}

// changes of one setting.
func changes(group, setting string, rows ...settingRow) []settingRow {
	for i := range rows {
		rows[i].group, rows[i].setting = group, setting
	}
	return rows
}

// v2Changes are the rows of a setting that restarts instance managers of the v2 data engine.
func v2Changes(setting, value, valueOfV2, wrong, detail string) []settingRow {
	return changes(system, setting, applies(valueOfV2, idle, oneEngineRestarts), waits(value, attachedV2, v2Waits), invalid(wrong, idle, detail))
}

// settingTable has the verdict on every setting of the danger zone: accepted, refused, and pending if it can be.
var settingTable = slices.Concat(
	changes(system, "storage-network",
		applies("kube-system/storage-net", idle, networkRestarts),
		waits("kube-system/storage-net", attached, networkWaits),
		waits("kube-system/storage-net", detaching, networkDetaching),
		waits("kube-system/new", idle, noSuchNetwork, "accepted; waiting: there is no NetworkAttachmentDefinition kube-system/new, and pods on it do not start: create it, or choose another network. Then 1 backing image manager and 6 instance managers restart one by one"),
		applies("kube-system/backup-net", onNetwork, forRWX(clientsRestart), networkRestarts),
		applies("kube-system/storage-net", malformedRWXNetwork, forRWX(clientsRestart), networkRestarts),
		valid("kube-system/storage-net", onNetwork),
		valid("kube-system/storage-net", networkSet),
		valid("kube-system/storage-net", guarding),
		waits("kube-system/storage-net", with("RWX network to be corrected, CSI plugin on the host network", func(c *cluster) {
			malformedRWXNetwork.change(c)
			c.Rollout.DaemonSet.HostNetwork = true
		}), forRWX(clientsOnHost), networkRestarts),
		applies("kube-system/storage-net", with("endpoint network malformed", func(c *cluster) { c.OwnValues[catalog.EndpointNetworkForRWX] = "ns/" }), malformedEndpoint, networkRestarts),
		invalid("kube-system", idle, notANetwork+inCluster+orCluster),
		invalid("x", with("no networks", func(c *cluster) { c.Rollout.Networks = map[multus.Network]bool{} }), notANetwork+" (no network exists yet)"+orCluster),
		invalid("x", networksNamed(8), notANetwork+" (in this cluster: ns/0, ns/1, ns/2, ns/3, ns/4, ns/5, ns/6, ns/7)"+orCluster),
		invalid("x", with("networks unknown", func(c *cluster) { c.Rollout.Networks = nil }), notANetwork+orCluster),
		invalid("x", networksNamed(10), notANetwork+" (in this cluster: ns/0, ns/1, ns/2, ns/3, ns/4, ns/5, ns/6, ns/7, and 2 more)"+orCluster),
		invalid(" kube-system/storage-net ", idle, `must not begin or end with white space; write "kube-system/storage-net"`),
		invalid(" kube-system ", idle, notANetwork+inCluster+orCluster), // the advice without space would be refused in turn
	),
	changes(system, "storage-network-for-rwx-volume-enabled",
		applies("false", onNetwork, clientsRestart),
		applies("true", networkSet, clientsRestart, kept),
		valid("true", networkSetGuarding, kept),
		valid("true", idle, "storage-network-for-rwx-volume-enabled has no effect until storage-network names a network"),
		valid("true", onNetwork),
		valid("true", leavingNetwork),
		valid("true", malformedNetwork, malformed),
		invalid("yes", idle, notASwitch),
	),
	changes(own, "storage-network-for-rwx-volume-enabled",
		waits("false", networkAttached, clientsWait),
		valid("true", endpointSet, `storage-network-for-rwx-volume-enabled has no effect while endpoint-network-for-rwx-volume is "kube-system/backup-net"`),
	),

	// From 1.11.
	changes(own, "endpoint-network-for-rwx-volume",
		applies("kube-system/backup-net", idle, clientsRestart),
		applies("kube-system/backup-net", with("no controller leads", func(c *cluster) { c.Idle = true }), "no controller of Fairlead leads now: nothing is applied until one does; fairlead check says what is wrong", clientsRestart),
		applies("kube-system/backup-net", attached, clientsRestart),
		applies("kube-system/backup-net", with("no setting of Fairlead", func(c *cluster) { c.OwnValues = nil }), clientsRestart),
		applies("kube-system/backup-net", with("clients on the network", func(c *cluster) { c.Rollout.Record.Clients = backupNet }), clientsRestart),
		applies("kube-system/backup-net", with("servers on the network", func(c *cluster) { c.Rollout.Record.Servers = backupNet }), clientsRestart),
		waits("kube-system/backup-net", with("record unreadable", func(c *cluster) { c.Rollout.Record.Problem = "it is unreadable" }), "not applied now: it is unreadable"),
		valid("kube-system/backup-net", effectOmitted),
		waits("kube-system/backup-net", attachedRWX, clientsWait),
		applies("kube-system/backup-net", gatedByNode, clientsByNode),
		waits("kube-system/storage-net", endpointSet, clientsWait),
		waits("kube-system/backup-net", with("CSI plugin on the host network", func(c *cluster) { c.Rollout.DaemonSet.HostNetwork = true }), clientsOnHost),
		valid("kube-system/backup-net", guarding, "Fairlead only checks settings here, and longhorn applies its own settings: set endpoint-network-for-rwx-volume in settings.longhorn.io too"),
		waits("kube-system/new", idle, noSuchNetwork, "accepted; waiting: there is no NetworkAttachmentDefinition kube-system/new, and pods on it do not start: create it, or choose another network. Then 3 CSI plugin pods restart."),
		refused(ReasonNoSuchNetwork, "kube-system/new", strict, `value: Invalid value: "kube-system/new": `+noSuchNetwork),
		applies("kube-system/new", with("strict, networks unknown", func(c *cluster) { c.MissingPolicy, c.Rollout.Networks = settings.Refuse, nil }), clientsRestart),
		valid("", strict),
		invalid("/nad", idle, notANetwork+`: namespace "" is not a DNS label`+inCluster+orCluster),
	),

	changes(system, "taint-toleration",
		applies("dedicated=storage:NoSchedule", idle, allRestart),
		waits("dedicated=storage:NoSchedule", attached, allWait),
		waits(":", attachedV2, allWaitForV2),
		applies(":", with("no taint", func(c *cluster) {
			for name, node := range c.Nodes {
				node.Taints = nil
				c.Nodes[name] = node
			}
		}), allRestart),
		waits("disk:NoSchedule", noNode, nodesGone),
		valid("disk:NoSchedule", with("toleration of no taint", func(c *cluster) { c.SystemValues[catalog.TaintToleration] = "disk:NoSchedule" })),
		valid("dedicated=storage:NoSchedule", effectOmitted),
		applies("disk:NoSchedule;dedicated:", idle, "no node has a taint that disk:NoSchedule tolerates: check the spelling", allRestart),
		invalid("dedicated", idle, `must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: "dedicated" must have one ":"`),
	),
	changes(system, "system-managed-components-node-selector",
		applies("disktype:ssd", idle, allRestart),
		waits("disktype:ssd", attached, allWait),
		waits("rack:a", idle, `components that restart on node-2, node-3 do not start there again: label the nodes with "rack:a" first, unless components are to leave these nodes`, oneNodeMatches),
		waits("rack:a", with("node without storage", func(c *cluster) {
			node := c.Nodes["node-3"]
			node.Storage = false
			c.Nodes["node-3"] = node
		}), `components that restart on node-2 do not start there again: label the nodes with "rack:a" first, unless components are to leave these nodes`, oneNodeMatches),
		waits("rack:z", noNode, nodesGone),
		waits("rack:z", idle, `no node has the labels "rack:z": components that restart have no node to run on; label nodes first`, noNodeMatches),
		invalid("disktype", idle, `must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none: "disktype" must have one ":"`),
	),
	changes(system, "priority-class",
		applies("system-node-critical", idle, allRestart),
		waits("system-node-critical", attached, allWait),
		waits("", attached, allWait),
		refused(ReasonNoSuchClass, "fast", idle, `value: Invalid value: "fast": there is no PriorityClass of this name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), so no pod with it would start; create the PriorityClass first`),
		invalid("Fast!", idle, `must be the name of a PriorityClass, like longhorn-critical, or "" for none`),
		valid("longhorn-critical", idle),
		valid("longhorn-critical", with("class deleted", func(c *cluster) { delete(c.Classes, "longhorn-critical") })),
		valid("system-node-critical", with("also in Fairlead's group", func(c *cluster) { c.OwnValues[catalog.PriorityClass] = "x" }),
			`not applied until the value is corrected: settings.fairlead.io priority-class has value "x", but Longhorn has this setting itself: set it in settings.longhorn.io. Clear the value in settings.fairlead.io`),
		applies("system-node-critical", malformedRWXNetwork, allRestart),
		applies("system-node-critical", with("network chosen", func(c *cluster) { c.OwnValues[catalog.EndpointNetworkForRWX] = "kube-system/backup-net" }), allRestart),
	),
	changes(system, "guaranteed-instance-manager-cpu",
		applies("20", idle, oneEngineRestarts),
		waits("20", attached, v1Waits),
		applies("20", attachedV2, oneEngineRestarts),
		invalid("41", idle, `must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`),
	),
	changes(system, "v2-data-engine-guaranteed-instance-manager-cpu",
		applies("2000", attached, oneEngineRestarts),
		waits("2000", attachedV2, v2Waits),
		valid("2000", noV2),
		invalid("999", idle, "must be a whole number from 1000 to 2147483647"),
	),

	// A data engine is not switched off under its volumes. Volumes of the other do not matter.
	changes(system, "v1-data-engine",
		applies("false", idle, oneEngineRemoved),
		refused(ReasonEngineInUse, "false", attached, "value: Forbidden: the v1 data engine can't be switched off while 1 of its volumes is attached: pvc-1 (node-1, pod default/db-0); stop the workloads that use the volume, then try again"),
		refused(ReasonEngineInUse, "false", manyAttached, manyAttachedV1),
		applies("false", attachedV2, oneEngineRemoved),
		valid("true", with("off, volume attached", func(c *cluster) {
			attached.change(c)
			c.SystemValues[catalog.V1DataEngine] = "false"
		})),
		waits("false", detaching, v1RemovalWaits),
		invalid("off", idle, notASwitch),
	),
	changes(system, "v2-data-engine",
		applies("false", attached, oneEngineRemoved),
		refused(ReasonEngineInUse, "false", attachedV2, "value: Forbidden: the v2 data engine can't be switched off while 1 of its volumes is attached: pvc-2 (node-3, pod default/db-0); stop the workloads that use the volume, then try again"),
		waits("false", detaching, v2RemovalWaits),
		valid("true", noV2),
		invalid("no", idle, notASwitch),
	),

	// The SPDK daemon of the v2 data engine.
	v2Changes("data-engine-cpu-mask", "0xf", `{"v2":"0xf"}`, `{"v2":"3-1"}`,
		`must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5, or one for each data engine as {"v2":"0x3"}: v2 is "3-1", range "3-1" is reversed`),
	changes(system, "data-engine-cpu-mask", valid("0-1", idle)), // the default, as a list
	v2Changes("data-engine-memory-size", "4096", `{"v2":"4096"}`, "4095", `must be an even number of MiB from 0 to 2147483646, or one for each data engine as {"v2":"2048"}`),
	v2Changes("data-engine-hugepage-enabled", "false", `{"v2":"false"}`, `{"v1":"true","v2":"true"}`, notASwitchOfV2+`: data engine "v1" must be v2`),
	v2Changes("data-engine-interrupt-mode-enabled", "true", `{"v2":"true"}`, `{"v2":true}`, notASwitchOfV2+": the value of v2 must be in quotes"),
	v2Changes("data-engine-number-of-cpu-cores", "2", `{"v2":"2"}`, "-1", `must be a whole number from 0 to 2147483647, or one for each data engine as {"v2":"2"}`),
	v2Changes("data-engine-cpu-isolation-enabled", "true", `{"v2":"true"}`, "yes", notASwitchOfV2),
	v2Changes("data-engine-iobuf-large-pool-size", "4096", `{"v2":"4096"}`, "1023", `must be a whole number from 1024 to 2147483647, or one for each data engine as {"v2":"4096"}`),
	v2Changes("data-engine-iobuf-small-pool-size", "16384", `{"v2":"16384"}`, "8191", `must be a whole number from 8192 to 2147483647, or one for each data engine as {"v2":"16384"}`),
	v2Changes("v2-data-engine-cpu-mask", "0xf", "0xf", "0x", "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"),
	v2Changes("log-path", "/var/log/longhorn", "/var/log/longhorn", "/logs", `must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`),
	changes(system, "v2-data-engine-hugepage-limit",
		refused(ReasonReadOnly, "-2", idle, "metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: only Longhorn writes its value"),
	),

	// Liveness probes.
	changes(system, "instance-manager-pod-liveness-probe-timeout",
		applies("20", idle, enginesRestart),
		waits("20", attached, enginesWait),
		invalid("0", idle, probeRange),
	),
	changes(own, "engine-image-pod-liveness-probe-period", applies("10", attached, engineImagesRoll), invalid("61", idle, probeRange)),
	changes(own, "engine-image-pod-liveness-probe-timeout", applies("8", attached, engineImagesRoll), invalid("4.5", idle, probeRange)),
	changes(own, "engine-image-pod-liveness-probe-failure-threshold", applies("6", attached, engineImagesRoll), invalid("many", idle, probeRange)),

	changes(own, "system-managed-csi-components-resource-limits",
		applies(`{"csi-attacher":{"requests":{"cpu":"10m"}}}`, attached, "accepted; being applied now: 1 Deployment rolls"),
		applies(`{"longhorn-csi-plugin":{"limits":{"memory":"256Mi"}}}`, attachedRWX, csiPluginRolls),
		invalid("10m", idle, `must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`),
	),

	// In effect at once: nothing restarts.
	changes(system, "concurrent-replica-rebuild-per-node-limit", valid("0", attached), invalid("-1", idle, "must be a whole number from 0 to 2147483647")),
	changes(system, "concurrent-backing-image-replenish-per-node-limit", valid("10", attached), invalid("ten", idle, "must be a whole number from 0 to 2147483647")),
	changes(system, "disable-snapshot-purge",
		valid("true", with("no clean-up", func(c *cluster) { c.SystemValues[catalog.AutoCleanup] = "false" })),
		refused(ReasonContradicts, "true", idle, `value: Forbidden: snapshots can't be kept while auto-cleanup-system-generated-snapshot is "true": set auto-cleanup-system-generated-snapshot to "false" first`),
		valid("false", idle),
		invalid("never", idle, notASwitch),
	),
	changes(own, string(catalog.AutoDeletePod), valid("false", idle)),

	// Not in the catalog.
	changes(system, "backup-target", valid("nfs://there", idle), valid("true", with("snapshots kept", func(c *cluster) { c.SystemValues[catalog.DisableSnapshotPurge] = "true" }))),
	changes(own, string(catalog.AutoCleanup), refused(ReasonUnknown, "true", idle, unknownSettingNamed(catalog.AutoCleanup))),
	changes(own, "priority-clas", refused(ReasonUnknown, "x", idle, unknownSettingNamed("priority-clas"))),
)

func unknownSettingNamed(name catalog.Name) string {
	var names []string
	for _, d := range catalog.All() {
		names = append(names, fmt.Sprintf("%q", d.Name))
	}
	return fmt.Sprintf("metadata.name: Unsupported value: %q: supported values: %s", name, strings.Join(names, ", "))
}

func TestSettingTable(t *testing.T) {
	for _, row := range settingTable {
		t.Run(fmt.Sprintf("%s %s=%s, %s", row.group, row.setting, row.value, row.in.name), func(t *testing.T) {
			checkVerdict(t, row.verdict(), row.reason, row.problems, row.warnings)
		})
	}
}

// verdict on a row. A setting that is set in Fairlead's own group is not in Longhorn's.
func (row settingRow) verdict() Verdict {
	facts, name := row.in.facts(), catalog.Name(row.setting)
	facts.Own = row.group == own
	if value, has := facts.SystemValues[name]; has && facts.Own {
		facts.OwnValues[name] = value
		delete(facts.SystemValues, name)
	}
	return ValidateSetting(settingOf(name, row.value), &Setting{}, facts)
}

// A value in the wrong group was stored and never took effect.
func TestSettingHasOneHome(t *testing.T) {
	const tooOld = "value: Forbidden: only Longhorn uses the setting, and the installed version does not have it (versions from 1.10 have it): upgrade Longhorn first"
	for _, row := range []struct {
		setting catalog.Name
		value   string
		in      situation
		problem string
	}{
		{catalog.PriorityClass, "longhorn-critical", idle, "value: Forbidden: Longhorn has this setting itself: set it in settings.longhorn.io"},
		{catalog.LogPath, "/var/log/longhorn", idle, tooOld},
		{catalog.V2CPUMask, "0x1", with("removed", func(c *cluster) { delete(c.SystemValues, catalog.V2CPUMask) }),
			"value: Forbidden: only Longhorn uses the setting, and the installed version does not have it (versions from 1.8, before 1.10, have it)"},
		{catalog.StorageNetworkForRWX, "true", with("replaced", func(c *cluster) {
			delete(c.SystemValues, catalog.StorageNetworkForRWX)
			c.SystemValues[catalog.EndpointNetworkForRWX] = ""
		}), "value: Forbidden: Longhorn has setting endpoint-network-for-rwx-volume instead: set endpoint-network-for-rwx-volume in settings.longhorn.io"},
	} {
		t.Run(string(row.setting), func(t *testing.T) {
			facts := row.in.facts()
			facts.Own = true
			checkVerdict(t, ValidateSetting(settingOf(row.setting, row.value), nil, facts), ReasonWrongGroup, []string{row.problem}, nil)
		})
	}
}

func TestSettingTableHasEverySetting(t *testing.T) {
	for _, d := range catalog.DangerZone() {
		accepted, refused, waits := false, false, false
		for _, row := range settingTable {
			if row.setting == string(d.Name) {
				refused = refused || len(row.problems) > 0
				accepted = accepted || len(row.problems) == 0 && row.reason != ReasonPending
				waits = waits || row.reason == ReasonPending
			}
		}
		must.Check(t, refused && accepted != d.ReadOnly && waits == (d.Gate != catalog.AtOnce && !d.ReadOnly),
			"%s: a row that is accepted %t, refused %t, pending %t; its gate: %s", d.Name, accepted, refused, waits, d.Gate)
	}
}

func TestSettingTableIsTheSameInBothGroups(t *testing.T) {
	for _, row := range settingTable {
		d, known := catalog.Lookup(row.setting)
		facts := row.in.facts()
		if !known || !d.ByFairlead || !facts.Applies || facts.Values[d.Name].Source == catalog.SourceFairlead {
			continue // only one group has the setting
		}
		if row.group == own {
			row.group = system
		} else {
			row.group = own
		}
		checkVerdict(t, row.verdict(), row.reason, row.problems, row.warnings)
	}
}

// The API server cuts long warnings after 256 characters. What the change waits for must not be cut.
func TestWarningsAreShort(t *testing.T) {
	for _, row := range settingTable {
		for _, w := range row.warnings {
			needed, _, _ := strings.Cut(w, ". Then ")
			must.Check(t, len(needed) <= 250, "%d characters: %s", len(needed), needed)
		}
	}
}

func TestSettingDeletionTable(t *testing.T) {
	const inUse = "metadata.name: Forbidden: components are built with engine-image-pod-liveness-probe-period: set the value to null, wait until the change is applied, then delete the setting"
	const noDeletion = `metadata.name: Forbidden: setting guaranteed-instance-manager-cpu can be changed but not deleted; set its value to "12", the default, instead`
	setInOwnGroup := func(c *cluster, value string) {
		c.OwnValues[catalog.StorageNetworkForRWX] = value
		delete(c.SystemValues, catalog.StorageNetworkForRWX)
	}
	ownDefault := with("default value", func(c *cluster) { setInOwnGroup(c, "false") })
	ownValue := with("value in use", func(c *cluster) {
		networkAttached.change(c)
		setInOwnGroup(c, "true")
	})
	probeSet := with("value set", func(c *cluster) { c.OwnValues[catalog.EngineImageProbePeriod] = "10" })
	probeRolled := with("value null, and still built", func(c *cluster) {
		c.Reported[catalog.EngineImageProbePeriod] = planner.Reported{Rolled: ptr.To("10")}
	})
	for _, row := range []settingRow{
		{setting: "guaranteed-instance-manager-cpu", group: system, in: attached, reason: ReasonNotDeletable, problems: []string{noDeletion}},
		{setting: "backup-target", group: system, in: idle, reason: ReasonValid},
		{setting: "priority-class", group: own, in: idle, reason: ReasonValid},
		{setting: "endpoint-network-for-rwx-volume", group: own, in: endpointSet, reason: ReasonValid,
			warnings: []string{`endpoint-network-for-rwx-volume is "" from now on (the default)`}},
		{setting: "storage-network-for-rwx-volume-enabled", group: own, in: ownValue, reason: ReasonPending,
			warnings: []string{`storage-network-for-rwx-volume-enabled is "false" from now on (the default)`, clientsWait}},
		{setting: "storage-network-for-rwx-volume-enabled", group: own, in: ownDefault, reason: ReasonValid},
		{setting: "engine-image-pod-liveness-probe-period", group: own, in: probeSet, reason: ReasonNotDeletable, problems: []string{inUse}},
		{setting: "engine-image-pod-liveness-probe-period", group: own, in: probeRolled, reason: ReasonNotDeletable, problems: []string{inUse}},
		{setting: "engine-image-pod-liveness-probe-period", group: own, in: idle, reason: ReasonValid},
		{setting: "unknown", group: own, in: idle, reason: ReasonValid},
	} {
		t.Run(fmt.Sprintf("%s %s, %s", row.group, row.setting, row.in.name), func(t *testing.T) {
			facts := row.in.facts()
			facts.Own = row.group == own
			checkVerdict(t, ValidateSettingDeletion(row.setting, facts), row.reason, row.problems, row.warnings)
		})
	}
}

func TestClearedSettingFallsBack(t *testing.T) {
	facts := with("on the network of Fairlead's setting", func(c *cluster) {
		c.OwnValues[catalog.EndpointNetworkForRWX] = "kube-system/backup-net"
		c.join(backupNet)
	}).facts()
	facts.Own = true
	cleared := settingOf(catalog.EndpointNetworkForRWX, "")
	cleared.Value = nil
	checkVerdict(t, ValidateSetting(cleared, nil, facts), ReasonApplies, nil, []string{clientsRestart})
	cleared = settingOf(catalog.AutoCleanup, "")
	cleared.Value = nil
	checkVerdict(t, ValidateSetting(cleared, nil, idle.facts()), ReasonValid, nil, nil)
}

// Longhorn deletes by itself the settings that a later version replaces.
func TestNoSettingOfTheStorageSystemIsDeleted(t *testing.T) {
	for _, d := range catalog.All() {
		v := ValidateSettingDeletion(string(d.Name), attached.facts())
		kept := v.Reason == ReasonNotDeletable && len(v.Problems) == 1
		must.Check(t, kept == (d.Until == "") && (kept || v.Reason == ReasonValid), "%s: %+v", d.Name, v)
	}
}

// Attached volumes close gates. They refuse no value but a data engine's "false".
func TestVolumesRefuseOnlyADataEngineOff(t *testing.T) {
	for _, row := range settingTable {
		if row.in.name != idle.name {
			continue
		}
		for _, in := range []situation{attached, attachedV2, attachedRWX, detaching, manyAttached} {
			row.in = in
			v := row.verdict()
			must.Check(t, slices.Equal(texts(v.Problems), row.problems) || v.Reason == ReasonEngineInUse, "%s=%s, %s: %q", row.setting, row.value, in.name, v.Problems)
		}
	}
}

func networksNamed(n int) situation {
	return with(fmt.Sprint(n, " networks"), func(c *cluster) {
		c.Rollout.Networks = map[multus.Network]bool{}
		for i := range n {
			c.Rollout.Networks[multus.Network{Namespace: "ns", Name: fmt.Sprint(i)}] = true
		}
	})
}
