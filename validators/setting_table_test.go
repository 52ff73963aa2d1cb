package validators

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// Groups of settings.
const (
	own    = "settings.fairlead.io"
	system = "settings.longhorn.io"
)

// withdrawn is no value: Fairlead's own setting gives the word back.
const withdrawn = "\x00"

// settingRow is a change of a setting, and what comes of it, word by word.
type settingRow struct {
	setting, group, value string
	// facts name a situation.
	facts string
	// reason of ReasonPending is accepted and waits; of ReasonApplies, accepted and
	// begins now; of ReasonValid, accepted with nothing to do.
	reason             string
	problems, warnings []string
}

// What is said of a change that waits for nothing.
const (
	allNow          = "accepted; being applied now: 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 6 instance managers restart one by one"
	threeNow        = "accepted; being applied now: 3 instance managers restart one by one"
	kept            = "storage-network still waits for 2 instance managers in use: this change restarts none of them (Fairlead's webhook refuses that to longhorn)"
	engineImagesNow = "accepted; being applied now: 1 DaemonSet rolls"
)

// settingTable is what becomes of every setting of the danger zone, in both
// groups: input, verdict, message. Facts are in setting_situations_test.go.
var settingTable = []settingRow{
	// The network of instance managers, and where the older RWX setting says so of RWX volumes too.
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: attachedRWX, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 1 backing image manager and 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-2-e-0 (node-1). Then 2 instance managers restart"},
	},
	{setting: "storage-network", group: system, value: "kube-system/new", facts: idle, reason: ReasonApplies,
		warnings: []string{"there is no NetworkAttachmentDefinition kube-system/new (in this cluster: kube-system/backup-net, kube-system/storage-net); pods that ask for it do not start until it is created", "accepted; being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/backup-net", facts: onNetwork, reason: ReasonApplies,
		warnings: []string{rolling, "accepted; being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "", facts: onNetwork, reason: ReasonApplies,
		warnings: []string{rolling, "accepted; being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: onNetwork, reason: ReasonValid},
	{setting: "storage-network", group: system, value: "kube-system", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "kube-system": must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: system, value: "A B/C!", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "A B/C!": must be <namespace>/<NetworkAttachmentDefinition>: namespace "A B" is not a DNS label (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: system, value: "ns/", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "ns/": must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: system, value: " kube-system/storage-net ", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: " kube-system/storage-net ": must not have space around it; write "kube-system/storage-net"`},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: guarding, reason: ReasonValid},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "false", facts: onNetwork, reason: ReasonApplies,
		warnings: []string{rolling},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "true", facts: networkWaits, reason: ReasonApplies,
		warnings: []string{rolling, kept},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "true", facts: networkWaitsGuarding, reason: ReasonValid,
		warnings: []string{kept},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "true", facts: idle, reason: ReasonValid,
		warnings: []string{"has no effect until storage-network names a network"},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "true", facts: onNetwork, reason: ReasonValid},
	{setting: "storage-network-for-rwx-volume-enabled", group: own, value: "false", facts: networkAttached, reason: ReasonPending,
		warnings: []string{"accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart."},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: own, value: "true", facts: endpointSet, reason: ReasonValid,
		warnings: []string{`has no effect while endpoint-network-for-rwx-volume is "kube-system/backup-net", which wins`},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "true", facts: malformedBefore, reason: ReasonValid,
		warnings: []string{`nothing is applied until this is corrected: invalid value of setting storage-network: value "ns/" must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`},
	},
	{setting: "storage-network-for-rwx-volume-enabled", group: system, value: "yes", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "yes": must be "true" or "false"`},
	},

	// The network of RWX volumes, from 1.11.
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/backup-net", facts: idle, reason: ReasonApplies,
		warnings: []string{rolling},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/backup-net", facts: attached, reason: ReasonApplies,
		warnings: []string{rolling},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/backup-net", facts: attachedRWX, reason: ReasonPending,
		warnings: []string{"accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart."},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/storage-net", facts: endpointSet, reason: ReasonPending,
		warnings: []string{"accepted; will be applied when these RWX volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 3 CSI plugin pods restart."},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/backup-net", facts: hostNetwork, reason: ReasonPending,
		warnings: []string{"accepted; can't be applied yet: DaemonSet longhorn-csi-plugin is on the host network, where Multus adds no interface: set hostNetwork to false. Then 3 CSI plugin pods restart."},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/new", facts: idle, reason: ReasonApplies,
		warnings: []string{"there is no NetworkAttachmentDefinition kube-system/new (in this cluster: kube-system/backup-net, kube-system/storage-net); pods that ask for it do not start until it is created", rolling},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "/nad", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "/nad": must be <namespace>/<NetworkAttachmentDefinition>: namespace "" is not a DNS label (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "endpoint-network-for-rwx-volume", group: own, value: "kube-system/backup-net", facts: guarding, reason: ReasonValid,
		warnings: []string{"Fairlead only guards settings here: longhorn applies endpoint-network-for-rwx-volume of its own group; set that too"},
	},

	// Taints that every component tolerates.
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: idle, reason: ReasonApplies,
		warnings: []string{allNow},
	},
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: attachedRWX, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "taint-toleration", group: system, value: ":", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-2 (node-3, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "taint-toleration", group: system, value: "disk:NoSchedule;dedicated:", facts: idle, reason: ReasonApplies,
		warnings: []string{"no node has a taint that disk:NoSchedule tolerates: is it spelled right?", allNow},
	},
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: cordoned, reason: ReasonPending,
		warnings: []string{"accepted; 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 4 instance managers restart one by one now; waiting: instance manager im-v1-node-3 on node-3 would not come back: the node is cordoned: uncordon it, and 1 more. Then 2 instance managers restart"},
	},
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: optedOut, reason: ReasonPending,
		warnings: []string{"accepted; 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 5 instance managers restart one by one now; waiting: instance manager im-v1-node-3 on node-3 opts out by fairlead.io/opt-out: remove the annotation. Then 1 instance manager restarts"},
	},
	{setting: "taint-toleration", group: system, value: "a=b=c:NoSchedule", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "a=b=c:NoSchedule": must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: "a=b=c:NoSchedule" must have at most one "="`},
	},
	{setting: "taint-toleration", group: system, value: "dedicated", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "dedicated": must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: "dedicated" must have one ":"`},
	},
	{setting: "taint-toleration", group: system, value: "dedicated:Never", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "dedicated:Never": must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: effect "Never" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`},
	},
	{setting: "taint-toleration", group: system, value: "dedicated:NoSchedule;", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "dedicated:NoSchedule;": must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: leave out the ";" at the end`},
	},

	// Labels of the nodes that components run on.
	{setting: "system-managed-components-node-selector", group: system, value: "disktype:ssd", facts: idle, reason: ReasonApplies,
		warnings: []string{allNow},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "disktype:ssd", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "rack:a", facts: idle, reason: ReasonPending,
		warnings: []string{
			`what restarts on node-2, node-3 does not start there again: label it with "rack:a" first, unless you mean that`,
			`accepted; 1 backing image manager and 2 instance managers restart one by one now; waiting: no node takes pods of csi-attacher (on node-1: the node has taint dedicated=storage:NoSchedule: remove it, or change taint-toleration). Then 4 Deployments and 2 DaemonSets roll`,
		},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "rack:z", facts: idle, reason: ReasonPending,
		warnings: []string{
			`no node has the labels "rack:z": what restarts does not start again anywhere; label nodes first`,
			`accepted; waiting: no node has the labels "rack:z": label nodes, or change system-managed-components-node-selector. Then 4 Deployments and 2 DaemonSets roll`,
		},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "disktype", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "disktype": must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none: "disktype" must have one ":"`},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "disktype:ssd;disktype:hdd", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "disktype:ssd;disktype:hdd": must be <key>:<value>, separated by ";", like disktype:ssd;zone:a, or "" for none: key "disktype" is there twice`},
	},

	// The class must exist: no pod of another would start.
	{setting: "priority-class", group: system, value: "system-node-critical", facts: idle, reason: ReasonApplies,
		warnings: []string{allNow},
	},
	{setting: "priority-class", group: system, value: "system-node-critical", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "priority-class", group: system, value: "system-node-critical", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-2 (node-3, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "priority-class", group: system, value: "system-node-critical", facts: manyAttached, reason: ReasonPending,
		warnings: []string{"accepted; 3 instance managers restart one by one now; the rest when these volumes are detached: pvc-00 (node-1, pod default/db-0), pvc-01 (node-2, pod default/db-0), pvc-02 (node-3, pod default/db-0), and 7 more. Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 3 instance managers restart"},
	},
	{setting: "priority-class", group: system, value: "", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "priority-class", group: system, value: "fast", facts: idle, reason: ReasonNoSuchClass,
		problems: []string{`value: Invalid value: "fast": there is no PriorityClass of that name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), and no pod of it would start; create it first`},
	},
	{setting: "priority-class", group: system, value: "fast", facts: attached, reason: ReasonNoSuchClass,
		problems: []string{`value: Invalid value: "fast": there is no PriorityClass of that name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), and no pod of it would start; create it first`},
	},
	{setting: "priority-class", group: system, value: "Fast!", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "Fast!": must be the name of a PriorityClass, like longhorn-critical, or "" for none`},
	},
	{setting: "priority-class", group: system, value: "longhorn-critical", facts: idle, reason: ReasonValid},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart one by one"},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: attachedV2, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: `{"v1":"20","v2":"12"}`, facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart one by one"},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "41", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "41": must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: `{"v1":"20"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v1\":\"20\"}": must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}: data engine v2 is missing`},
	},
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, value: "2000", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, value: "2000", facts: attached, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, value: "2000", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, value: "2000", facts: noV2, reason: ReasonValid},
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: system, value: "999", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "999": must be a whole number from 1000 to 2147483647`},
	},

	// A data engine is not switched off under its volumes, and those of the other don't matter.
	{setting: "v1-data-engine", group: system, value: "false", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 3 instance managers are removed"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attached, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 1 volume of it is attached: pvc-1 (node-1, pod default/db-0); stop what uses it, then try again"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attachedRWX, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 1 volume of it is attached: pvc-rwx (node-2, pod default/web-0); stop what uses it, then try again"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: manyAttached, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 10 volumes of it are attached: pvc-00 (node-1, pod default/db-0), pvc-01 (node-2, pod default/db-0), pvc-02 (node-3, pod default/db-0), and 7 more; stop what uses them, then try again"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attachedV2, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 3 instance managers are removed"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1). Then 1 instance manager is removed"},
	},
	{setting: "v1-data-engine", group: system, value: "off", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "off": must be "true" or "false"`},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 3 instance managers are removed"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: attached, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 3 instance managers are removed"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: attachedV2, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v2 data engine can't be switched off while 1 volume of it is attached: pvc-2 (node-3, pod default/db-0); stop what uses it, then try again"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-1). Then 1 instance manager is removed"},
	},
	{setting: "v2-data-engine", group: system, value: "true", facts: noV2, reason: ReasonValid},
	{setting: "v2-data-engine", group: system, value: "no", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "no": must be "true" or "false"`},
	},

	// The SPDK daemon of the v2 data engine.
	{setting: "data-engine-cpu-mask", group: system, value: `{"v2":"0xf"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-cpu-mask", group: system, value: "0xf", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-cpu-mask", group: system, value: "0-1", facts: idle, reason: ReasonValid},
	{setting: "data-engine-cpu-mask", group: system, value: `{"v2":"3-1"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v2\":\"3-1\"}": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5, or one for each data engine as {"v2":"0x3"}: v2 is "3-1", range "3-1" is the wrong way round`},
	},
	{setting: "data-engine-cpu-mask", group: system, value: "0x0", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "0x0": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5, or one for each data engine as {"v2":"0x3"}: no CPU is in it`},
	},
	{setting: "data-engine-memory-size", group: system, value: `{"v2":"4096"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-memory-size", group: system, value: "4096", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-memory-size", group: system, value: "4096", facts: noV2, reason: ReasonValid},
	{setting: "data-engine-memory-size", group: system, value: "4095", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "4095": must be an even number of MiB from 0 to 2147483646, or one for each data engine as {"v2":"2048"}`},
	},
	{setting: "data-engine-hugepage-enabled", group: system, value: `{"v2":"false"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-hugepage-enabled", group: system, value: "false", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-hugepage-enabled", group: system, value: `{"v1":"true","v2":"true"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v1\":\"true\",\"v2\":\"true\"}": must be "true" or "false", or one for each data engine as {"v2":"true"}: data engine "v1" must be v2`},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: system, value: `{"v2":"true"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: system, value: "true", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: system, value: `{"v2":true}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v2\":true}": must be "true" or "false", or one for each data engine as {"v2":"true"}: the value of v2 must be in quotes`},
	},

	// From 1.12.1.
	{setting: "data-engine-number-of-cpu-cores", group: system, value: `{"v2":"2"}`, facts: idle, reason: ReasonApplies, warnings: []string{threeNow}},
	{setting: "data-engine-number-of-cpu-cores", group: system, value: "2", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-number-of-cpu-cores", group: system, value: "-1", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "-1": must be a whole number from 0 to 2147483647, or one for each data engine as {"v2":"2"}`},
	},
	{setting: "data-engine-cpu-isolation-enabled", group: system, value: `{"v2":"true"}`, facts: idle, reason: ReasonApplies, warnings: []string{threeNow}},
	{setting: "data-engine-cpu-isolation-enabled", group: system, value: "true", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-cpu-isolation-enabled", group: system, value: "yes", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "yes": must be "true" or "false", or one for each data engine as {"v2":"true"}`},
	},
	{setting: "data-engine-iobuf-large-pool-size", group: system, value: `{"v2":"4096"}`, facts: idle, reason: ReasonApplies, warnings: []string{threeNow}},
	{setting: "data-engine-iobuf-large-pool-size", group: system, value: "4096", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-iobuf-large-pool-size", group: system, value: "1023", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "1023": must be a whole number from 1024 to 2147483647, or one for each data engine as {"v2":"4096"}`},
	},
	{setting: "data-engine-iobuf-small-pool-size", group: system, value: `{"v2":"16384"}`, facts: idle, reason: ReasonApplies, warnings: []string{threeNow}},
	{setting: "data-engine-iobuf-small-pool-size", group: system, value: "16384", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-iobuf-small-pool-size", group: system, value: "8191", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "8191": must be a whole number from 8192 to 2147483647, or one for each data engine as {"v2":"16384"}`},
	},

	// What the first two were called before 1.10.
	{setting: "v2-data-engine-cpu-mask", group: system, value: "0xf", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "v2-data-engine-cpu-mask", group: system, value: "0xf", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "v2-data-engine-cpu-mask", group: system, value: "0x", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "0x": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5`},
	},
	{setting: "v2-data-engine-hugepage-limit", group: system, value: "4096", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},
	{setting: "v2-data-engine-hugepage-limit", group: system, value: "4096", facts: attachedV2, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},
	{setting: "v2-data-engine-hugepage-limit", group: system, value: "-2", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},

	// Where instance managers of the v2 data engine log.
	{setting: "log-path", group: system, value: "/var/log/longhorn", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "log-path", group: system, value: "/var/log/longhorn", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "log-path", group: system, value: "/logs", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "/logs": must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`},
	},
	{setting: "log-path", group: system, value: "/var/../logs", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "/var/../logs": must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`},
	},

	// Liveness probes.
	{setting: "instance-manager-pod-liveness-probe-timeout", group: system, value: "20", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 6 instance managers restart one by one"},
	},
	{setting: "instance-manager-pod-liveness-probe-timeout", group: system, value: "20", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart"},
	},
	{setting: "instance-manager-pod-liveness-probe-timeout", group: system, value: "0", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "0": must be a whole number from 1 to 60`},
	},
	{setting: "engine-image-pod-liveness-probe-period", group: own, value: "10", facts: idle, reason: ReasonApplies,
		warnings: []string{engineImagesNow},
	},
	{setting: "engine-image-pod-liveness-probe-period", group: own, value: "10", facts: attached, reason: ReasonApplies,
		warnings: []string{engineImagesNow},
	},
	{setting: "engine-image-pod-liveness-probe-period", group: own, value: "61", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "61": must be a whole number from 1 to 60`},
	},
	{setting: "engine-image-pod-liveness-probe-timeout", group: own, value: "8", facts: attached, reason: ReasonApplies,
		warnings: []string{engineImagesNow},
	},
	{setting: "engine-image-pod-liveness-probe-timeout", group: own, value: "4.5", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "4.5": must be a whole number from 1 to 60`},
	},
	{setting: "engine-image-pod-liveness-probe-failure-threshold", group: own, value: "6", facts: attached, reason: ReasonApplies,
		warnings: []string{engineImagesNow},
	},
	{setting: "engine-image-pod-liveness-probe-failure-threshold", group: own, value: "many", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "many": must be a whole number from 1 to 60`},
	},

	// Resources of CSI containers. Those of the plugin restart it, which no mount may feel.
	{setting: "system-managed-csi-components-resource-limits", group: own, value: `{"csi-attacher":{"requests":{"cpu":"10m"}}}`, facts: attached, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 1 Deployment rolls"},
	},
	{setting: "system-managed-csi-components-resource-limits", group: own, value: `{"longhorn-csi-plugin":{"limits":{"memory":"256Mi"}}}`, facts: attachedRWX, reason: ReasonApplies,
		warnings: []string{"accepted; being applied now: 1 DaemonSet rolls; CSI plugin pods restart each when no RWX volume is attached on its node"},
	},
	{setting: "system-managed-csi-components-resource-limits", group: own, value: `{"csi-attacher":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"csi-attacher\":{\"requests\":{\"cpu\":\"2\"},\"limits\":{\"cpu\":\"1\"}}}": must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none: csi-attacher: the request of cpu must not be more than its limit`},
	},
	{setting: "system-managed-csi-components-resource-limits", group: own, value: `{"sidecar":{}}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"sidecar\":{}}": must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none: container "sidecar" must be one of csi-attacher, csi-provisioner, csi-resizer, csi-snapshotter, longhorn-csi-plugin, longhorn-liveness-probe, node-driver-registrar`},
	},
	{setting: "system-managed-csi-components-resource-limits", group: own, value: "10m", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "10m": must be a JSON object of requests and limits by container, like {"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}}}, or "" for none`},
	},

	// In force at once: nothing restarts.
	{setting: "concurrent-replica-rebuild-per-node-limit", group: system, value: "0", facts: attached, reason: ReasonValid},
	{setting: "concurrent-replica-rebuild-per-node-limit", group: system, value: "-1", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "-1": must be a whole number from 0 to 2147483647`},
	},
	{setting: "concurrent-backing-image-replenish-per-node-limit", group: system, value: "10", facts: attached, reason: ReasonValid},
	{setting: "concurrent-backing-image-replenish-per-node-limit", group: system, value: "ten", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "ten": must be a whole number from 0 to 2147483647`},
	},
	{setting: "disable-snapshot-purge", group: system, value: "true", facts: noCleanup, reason: ReasonValid},
	{setting: "disable-snapshot-purge", group: system, value: "true", facts: idle, reason: ReasonContradicts,
		problems: []string{`value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "true": set that to "false" first`},
	},
	{setting: "disable-snapshot-purge", group: system, value: "false", facts: idle, reason: ReasonValid},
	{setting: "disable-snapshot-purge", group: system, value: "never", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "never": must be "true" or "false"`},
	},

	// Names that are not Fairlead's to judge, are read-only, or are nobody's.
	{setting: "backup-target", group: system, value: "nfs://there", facts: idle, reason: ReasonValid},
	{setting: "current-longhorn-version", group: system, value: "v1.8.0", facts: idle, reason: ReasonValid},
}

func TestSettingTable(t *testing.T) {
	for _, row := range settingTable {
		t.Run(fmt.Sprintf("%s %s=%s, %s", row.group, row.setting, row.value, row.facts), func(t *testing.T) {
			checkVerdict(t, judge(row, nil), row.reason, row.problems, row.warnings)
		})
	}
}

// judge a row; change is made to setting and facts before.
func judge(row settingRow, change func(*Setting, *SettingFacts)) Verdict {
	facts := situation(row.facts)
	facts.Own = row.group == own
	var s Setting
	if s.Metadata.Name = row.setting; row.value != withdrawn {
		s.Value = &row.value
	}
	if was, has := facts.SystemValues[catalog.Name(row.setting)]; has && facts.Own { // its home is Longhorn's group then
		facts.OwnValues[catalog.Name(row.setting)] = was
		delete(facts.SystemValues, catalog.Name(row.setting))
	}
	if change != nil {
		change(&s, &facts)
	}
	return ValidateSetting(s, &Setting{}, facts)
}

// A value in the wrong group was stored and came to nothing, or restarted what came
// back as it was.
func TestSettingHasOneHome(t *testing.T) {
	const (
		has   = "value: Forbidden: longhorn has this setting itself: set it in settings.longhorn.io"
		lacks = "value: Forbidden: this longhorn does not have the setting (versions from %s on do), and it alone goes by it: upgrade it first"
	)
	without := func(name catalog.Name) func(*Setting, *SettingFacts) {
		return func(_ *Setting, f *SettingFacts) { delete(f.SystemValues, name) }
	}
	for _, row := range []struct {
		setting, value string
		change         func(*Setting, *SettingFacts)
		problem        string
	}{
		{setting: "priority-class", value: "longhorn-critical", problem: has},
		{setting: "guaranteed-instance-manager-cpu", value: "20", problem: has},
		{setting: "storage-network-for-rwx-volume-enabled", value: "true", problem: has},
		{setting: "auto-delete-pod-when-volume-detached-unexpectedly", value: "true"},
		{setting: "log-path", value: "/var/log/longhorn", problem: fmt.Sprintf(lacks, "1.10")},
		{setting: "data-engine-cpu-mask", value: "0xf", problem: fmt.Sprintf(lacks, "1.10")},
		{setting: "engine-image-pod-liveness-probe-period", value: "10"},
		{setting: "endpoint-network-for-rwx-volume", value: "kube-system/backup-net"},
		{setting: "v2-data-engine-cpu-mask", value: "0x1", change: without("v2-data-engine-cpu-mask"),
			problem: "value: Forbidden: this longhorn does not have the setting (only versions from 1.8, before 1.10), and it alone goes by it"},
		{setting: "storage-network-for-rwx-volume-enabled", value: "true",
			change: func(_ *Setting, f *SettingFacts) {
				delete(f.SystemValues, catalog.StorageNetworkForRWX)
				f.SystemValues[catalog.EndpointNetworkForRWX] = ""
			}, problem: "value: Forbidden: longhorn has endpoint-network-for-rwx-volume in its place: set that in settings.longhorn.io"},
	} {
		t.Run(row.setting, func(t *testing.T) {
			facts := situation(idle)
			facts.Own = true
			var s Setting
			s.Metadata.Name, s.Value = row.setting, &row.value
			if row.change != nil {
				row.change(&s, &facts)
			}
			v := ValidateSetting(s, nil, facts)
			var problem string
			if len(v.Problems) > 0 {
				problem = v.Problems.ToAggregate().Error()
			}
			if problem != row.problem || (problem != "") != (v.Reason == ReasonNotAtHome) {
				t.Errorf("%s: got %s\nwant %s", v.Reason, problem, row.problem)
			}
		})
	}
}

// The table is only worth its name if it leaves nothing out.
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
		if d.ReadOnly {
			if accepted || waits || !refused {
				t.Errorf("%s is read-only, and a row accepts it", d.Name)
			}
			continue
		}
		if !accepted || !refused || waits != (d.Gate != catalog.AtOnce) {
			t.Errorf("%s: a row that is accepted %t, refused %t, pending %t; its gate: %s", d.Name, accepted, refused, waits, d.Gate)
		}
	}
}

// Who changes Fairlead's own setting and who changes the storage system's reads the same.
func TestSettingTableIsTheSameInBothGroups(t *testing.T) {
	for _, row := range settingTable {
		if d, known := catalog.Lookup(row.setting); !known || !d.ByFairlead || !situation(row.facts).Applies {
			continue // it has a home in one group only
		}
		other := row
		if other.group = own; row.group == own {
			other.group = system
		}
		if row.value == withdrawn || situation(row.facts).Values[catalog.Name(row.setting)].Source == catalog.SourceFairlead {
			continue // the storage system's setting has no word there
		}
		checkVerdict(t, judge(other, nil), row.reason, row.problems, row.warnings)
	}
}

// An API server that has much to say cuts a warning after 256 characters: no
// more than what follows from the change may be cut, not what it waits for.
func TestWarningsAreShort(t *testing.T) {
	for _, row := range settingTable {
		for _, w := range row.warnings {
			if needed, _, _ := strings.Cut(w, ". Then "); len(needed) > 250 {
				t.Errorf("%d characters: %s", len(needed), needed)
			}
		}
	}
}

func TestSettingDeletionTable(t *testing.T) {
	cantBe := func(name catalog.Name, byDefault string) []string {
		return []string{fmt.Sprintf("metadata.name: Forbidden: setting %s can be changed but not deleted; set its value to %q, the default, instead", name, byDefault)}
	}
	for _, row := range []struct {
		setting            catalog.Name
		group, facts       string
		reason             string
		problems, warnings []string
	}{
		// The storage system's: never.
		{setting: catalog.PriorityClass, group: system, facts: idle, reason: ReasonNotDeletable, problems: cantBe("priority-class", "")},
		{setting: catalog.GuaranteedCPU, group: system, facts: attached, reason: ReasonNotDeletable, problems: cantBe("guaranteed-instance-manager-cpu", "12")},
		{setting: catalog.DataEngineCPUMask, group: system, facts: idle, reason: ReasonNotDeletable, problems: cantBe("data-engine-cpu-mask", `{"v2":"0x3"}`)},
		{setting: "backup-target", group: system, facts: idle, reason: ReasonValid},
		// Fairlead's own: then the storage system's value is in force, or the default.
		{setting: catalog.PriorityClass, group: own, facts: idle, reason: ReasonValid},
		{setting: catalog.EndpointNetworkForRWX, group: own, facts: endpointSet, reason: ReasonValid,
			warnings: []string{`endpoint-network-for-rwx-volume is "" from now on (the default)`},
		},
		{setting: catalog.EngineImageProbePeriod, group: own, facts: probeSet, reason: ReasonNotDeletable, problems: []string{
			"metadata.name: Forbidden: components are built with engine-image-pod-liveness-probe-period: set its value to null and wait until that is applied, then delete it",
		}},
		{setting: catalog.EngineImageProbePeriod, group: own, facts: idle, reason: ReasonValid},
		{setting: "nobodys", group: own, facts: idle, reason: ReasonValid},
	} {
		t.Run(fmt.Sprintf("%s %s, %s", row.group, row.setting, row.facts), func(t *testing.T) {
			facts := situation(row.facts)
			facts.Own = row.group == own
			checkVerdict(t, ValidateSettingDeletion(string(row.setting), facts), row.reason, row.problems, row.warnings)
		})
	}
}

// Every setting of the catalog is kept, whatever it is set to and attached, but
// for those that a later version of Longhorn replaces and deletes by itself.
func TestNoSettingOfTheStorageSystemIsDeleted(t *testing.T) {
	for _, d := range catalog.All() {
		v := ValidateSettingDeletion(string(d.Name), situation(attached))
		switch {
		case d.Until != "" && (v.Reason != ReasonValid || len(v.Problems) != 0):
			t.Errorf("%s, which longhorn-manager deletes as it starts: %+v", d.Name, v)
		case d.Until == "" && (v.Reason != ReasonNotDeletable || len(v.Problems) != 1):
			t.Errorf("%s: %+v", d.Name, v)
		}
	}
}

// TestUnknownNames: the message offers every name that there is.
func TestUnknownNames(t *testing.T) {
	row := settingRow{setting: "priority-clas", group: own, value: "x", facts: idle}
	checkVerdict(t, judge(row, nil), ReasonUnknown, []string{`metadata.name: Unsupported value: "priority-clas": supported values: ` + everyName()}, nil)
	for _, d := range catalog.DangerZone() {
		if !strings.Contains(everyName(), fmt.Sprintf("%q", d.Name)) {
			t.Errorf("%s is not offered", d.Name)
		}
	}
}

// Attached volumes close gates: they refuse nothing but a data engine off.
func TestVolumesRefuseOnlyADataEngineOff(t *testing.T) {
	for _, row := range settingTable {
		if row.facts != idle {
			continue
		}
		for _, facts := range []string{attached, attachedV2, attachedRWX, detaching, manyAttached} {
			held := row
			held.facts = facts
			v := judge(held, nil)
			var problems []string
			for _, p := range v.Problems {
				problems = append(problems, p.Error())
			}
			if !slices.Equal(problems, row.problems) && v.Reason != ReasonEngineInUse {
				t.Errorf("%s=%s, %s: %q", row.setting, row.value, facts, problems)
			}
		}
	}
}
