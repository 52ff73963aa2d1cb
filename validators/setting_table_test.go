package validators

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/settings"
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
	allNow          = "accepted; nothing keeps it from being applied now: 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 6 instance managers restart one by one"
	threeNow        = "accepted; nothing keeps it from being applied now: 3 instance managers restart one by one"
	kept            = "storage-network still waits for 2 instance managers in use: this change restarts none of them (Fairlead's webhook refuses that to longhorn)"
	engineImagesNow = "accepted; nothing keeps it from being applied now: 1 DaemonSet rolls"
)

// settingTable is what becomes of every setting of the danger zone, in both
// groups: input, verdict, message. Facts are in setting_situations_test.go.
var settingTable = []settingRow{
	// The network of instance managers, and where the older RWX setting says so of RWX volumes too.
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). Then 1 backing image manager and 2 instance managers restart"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: attachedRWX, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-rwx (node-2, pod default/web-0). Then 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "storage-network", group: own, value: "kube-system/storage-net", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 1 backing image manager and 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-2-e-0 (node-1). Then 2 instance managers restart"},
	},
	{setting: "storage-network", group: system, value: "kube-system/new", facts: idle, reason: ReasonApplies,
		warnings: []string{"there is no NetworkAttachmentDefinition kube-system/new (in this cluster: kube-system/backup-net, kube-system/storage-net); pods that ask for it do not start until it is created", "accepted; nothing keeps it from being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/backup-net", facts: onNetwork, reason: ReasonApplies,
		warnings: []string{rolling, "accepted; nothing keeps it from being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "", facts: onNetwork, reason: ReasonApplies,
		warnings: []string{rolling, "accepted; nothing keeps it from being applied now: 1 backing image manager and 6 instance managers restart one by one"},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: onNetwork, reason: ReasonValid},
	{setting: "storage-network", group: system, value: "kube-system", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "kube-system": must be <namespace>/<NetworkAttachmentDefinition> (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: system, value: "A B/C!", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "A B/C!": must be <namespace>/<NetworkAttachmentDefinition>: namespace "A B" is not a DNS label (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: own, value: "ns/", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "ns/": must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name (in this cluster: kube-system/backup-net, kube-system/storage-net), or "" for the cluster network`},
	},
	{setting: "storage-network", group: system, value: " kube-system/storage-net ", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: " kube-system/storage-net ": must not have space around it; write "kube-system/storage-net"`},
	},
	{setting: "storage-network", group: system, value: "kube-system/storage-net", facts: guarding, reason: ReasonValid},
	{setting: "storage-network", group: own, value: "kube-system/storage-net", facts: guarding, reason: ReasonValid,
		warnings: []string{"Fairlead only guards settings here: longhorn applies storage-network of its own group; set that too"},
	},

	// Whether RWX volumes use it too, to 1.10. The newer setting wins.
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
		warnings: []string{`nothing is applied until this is corrected: invalid value of setting storage-network: must be <namespace>/<NetworkAttachmentDefinition>: name "" is not a DNS name`},
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
	{setting: "taint-toleration", group: own, value: ":", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 5 instance managers restart one by one now; the rest when these volumes are detached: pvc-2 (node-3, pod default/db-0). Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 1 instance manager restart"},
	},
	{setting: "taint-toleration", group: system, value: "disk:NoSchedule;dedicated:", facts: idle, reason: ReasonApplies,
		warnings: []string{"no node has a taint that disk:NoSchedule tolerates: is it spelled right?", allNow},
	},
	{setting: "taint-toleration", group: system, value: "dedicated=storage:NoSchedule", facts: cordoned, reason: ReasonPending,
		warnings: []string{"accepted; 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 4 instance managers restart one by one now; waiting: instance manager im-v1-node-3 on node-3 would not come back while the node is cordoned: uncordon it, and 1 more. Then 2 instance managers restart"},
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
	{setting: "taint-toleration", group: own, value: "dedicated:Never", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "dedicated:Never": must be <key>[=<value>]:<effect>, separated by ";", like dedicated=storage:NoSchedule;maintenance:NoExecute, or "" for none: effect "Never" must be NoSchedule, PreferNoSchedule, NoExecute or nothing`},
	},
	{setting: "taint-toleration", group: own, value: "dedicated:NoSchedule;", facts: idle, reason: ReasonInvalidValue,
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
			`accepted; 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart one by one now; waiting: instance manager im-v1-node-2 on node-2 would not come back: its node lacks "rack:a": label it, and 3 more. Then 4 instance managers restart`,
		},
	},
	{setting: "system-managed-components-node-selector", group: system, value: "rack:z", facts: idle, reason: ReasonPending,
		warnings: []string{
			`no node has the labels "rack:z": what restarts does not start again anywhere; label nodes first`,
			`accepted; waiting: no node has the labels "rack:z", so no pod of a DaemonSet or Deployment would start: label nodes, or change system-managed-components-node-selector, and 7 more. Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 6 instance managers restart one by one`,
		},
	},
	{setting: "system-managed-components-node-selector", group: own, value: "disktype", facts: idle, reason: ReasonInvalidValue,
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
	{setting: "priority-class", group: own, value: "system-node-critical", facts: manyAttached, reason: ReasonPending,
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
	{setting: "priority-class", group: own, value: "Fast!", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "Fast!": must be the name of a PriorityClass, like longhorn-critical, or "" for none`},
	},
	{setting: "priority-class", group: system, value: "longhorn-critical", facts: idle, reason: ReasonValid},
	{setting: "priority-class", group: system, value: "longhorn-critical", facts: ownSaysSo, reason: ReasonValid,
		warnings: []string{`longhorn goes by it, and Fairlead does not roll it out while settings.fairlead.io priority-class says "system-node-critical": delete that`},
	},
	{setting: "priority-class", group: own, value: withdrawn, facts: ownSaysSo, reason: ReasonApplies,
		warnings: []string{allNow},
	},

	// CPU of instance managers, by data engine: volumes of the other engine don't matter.
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart one by one"},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: attachedV2, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "guaranteed-instance-manager-cpu", group: own, value: `{"v1":"20","v2":"12"}`, facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 1 instance manager restarts now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart one by one"},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "41", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "41": must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}`},
	},
	{setting: "guaranteed-instance-manager-cpu", group: own, value: `{"v1":"20"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v1\":\"20\"}": must be a number from 0 to 40, or one for each data engine as {"v1":"12","v2":"12"}: data engine v2 is missing`},
	},
	{setting: "guaranteed-instance-manager-cpu", group: system, value: "20", facts: ownSaysSo, reason: ReasonValid,
		warnings: []string{`longhorn goes by it, and Fairlead does not roll it out while settings.fairlead.io guaranteed-instance-manager-cpu says "12": delete that`},
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
	{setting: "v2-data-engine-guaranteed-instance-manager-cpu", group: own, value: "999", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "999": must be a whole number from 1000 to 8000`},
	},

	// A data engine is not switched off under its volumes, and those of the other don't matter.
	{setting: "v1-data-engine", group: system, value: "false", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 3 instance managers are removed"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attached, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 1 volume of it is attached: pvc-1 (node-1, pod default/db-0); stop what uses it, then try again"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attachedRWX, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 1 volume of it is attached: pvc-rwx (node-2, pod default/web-0); stop what uses it, then try again"},
	},
	{setting: "v1-data-engine", group: own, value: "false", facts: manyAttached, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v1 data engine can't be switched off while 10 volumes of it are attached: pvc-00 (node-1, pod default/db-0), pvc-01 (node-2, pod default/db-0), pvc-02 (node-3, pod default/db-0), and 7 more; stop what uses them, then try again"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: attachedV2, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 3 instance managers are removed"},
	},
	{setting: "v1-data-engine", group: system, value: "false", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1). Then 1 instance manager is removed"},
	},
	{setting: "v1-data-engine", group: system, value: "off", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "off": must be "true" or "false"`},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 3 instance managers are removed"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: attached, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 3 instance managers are removed"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: attachedV2, reason: ReasonEngineInUse,
		problems: []string{"value: Forbidden: the v2 data engine can't be switched off while 1 volume of it is attached: pvc-2 (node-3, pod default/db-0); stop what uses it, then try again"},
	},
	{setting: "v2-data-engine", group: system, value: "false", facts: detaching, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers are removed now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-1). Then 1 instance manager is removed"},
	},
	{setting: "v2-data-engine", group: system, value: "true", facts: noV2, reason: ReasonValid},
	{setting: "v2-data-engine", group: own, value: "no", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "no": must be "true" or "false"`},
	},

	// The SPDK daemon of the v2 data engine.
	{setting: "data-engine-cpu-mask", group: own, value: `{"v2":"0xf"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-cpu-mask", group: own, value: "0xf", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-cpu-mask", group: own, value: "0-1", facts: idle, reason: ReasonValid},
	{setting: "data-engine-cpu-mask", group: own, value: `{"v2":"3-1"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v2\":\"3-1\"}": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5, or one for each data engine as {"v2":"0x3"}: v2 is "3-1", range "3-1" is the wrong way round`},
	},
	{setting: "data-engine-cpu-mask", group: own, value: "0x0", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "0x0": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5, or one for each data engine as {"v2":"0x3"}: no CPU is in it`},
	},
	{setting: "data-engine-memory-size", group: own, value: `{"v2":"4096"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-memory-size", group: own, value: "4096", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-memory-size", group: own, value: "4096", facts: noV2, reason: ReasonValid},
	{setting: "data-engine-memory-size", group: own, value: "4095", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "4095": must be an even number of MiB from 0 to 2147483646, or one for each data engine as {"v2":"2048"}`},
	},
	{setting: "data-engine-hugepage-enabled", group: own, value: `{"v2":"false"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-hugepage-enabled", group: own, value: "false", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-hugepage-enabled", group: own, value: `{"v1":"true","v2":"true"}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v1\":\"true\",\"v2\":\"true\"}": must be "true" or "false", or one for each data engine as {"v2":"true"}: data engine "v1" must be v2`},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: own, value: `{"v2":"true"}`, facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: own, value: "true", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "data-engine-interrupt-mode-enabled", group: own, value: `{"v2":true}`, facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "{\"v2\":true}": must be "true" or "false", or one for each data engine as {"v2":"true"}: the value of v2 must be in quotes`},
	},

	// What the first two were called before 1.10.
	{setting: "v2-data-engine-cpu-mask", group: own, value: "0xf", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "v2-data-engine-cpu-mask", group: own, value: "0xf", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "v2-data-engine-cpu-mask", group: own, value: "0x", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "0x": must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5`},
	},
	{setting: "v2-data-engine-hugepage-limit", group: system, value: "4096", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},
	{setting: "v2-data-engine-hugepage-limit", group: own, value: "4096", facts: attachedV2, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},
	{setting: "v2-data-engine-hugepage-limit", group: own, value: "-2", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting v2-data-engine-hugepage-limit is read-only: longhorn writes it by itself"},
	},

	// Where instance managers of the v2 data engine log.
	{setting: "log-path", group: own, value: "/var/log/longhorn", facts: idle, reason: ReasonApplies,
		warnings: []string{threeNow},
	},
	{setting: "log-path", group: own, value: "/var/log/longhorn", facts: attachedV2, reason: ReasonPending,
		warnings: []string{"accepted; 2 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-2-e-0 (node-3), pvc-2-r-0 (node-3). Then 1 instance manager restarts"},
	},
	{setting: "log-path", group: own, value: "/logs", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "/logs": must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`},
	},
	{setting: "log-path", group: own, value: "/var/../logs", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "/var/../logs": must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`},
	},

	// Liveness probes.
	{setting: "instance-manager-pod-liveness-probe-timeout", group: own, value: "20", facts: idle, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 6 instance managers restart one by one"},
	},
	{setting: "instance-manager-pod-liveness-probe-timeout", group: own, value: "20", facts: attached, reason: ReasonPending,
		warnings: []string{"accepted; 4 instance managers restart one by one now; the rest when these engines and replicas have stopped: pvc-1-e-0 (node-1), pvc-1-r-0 (node-2). Then 2 instance managers restart"},
	},
	{setting: "instance-manager-pod-liveness-probe-timeout", group: own, value: "0", facts: idle, reason: ReasonInvalidValue,
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
		warnings: []string{"accepted; nothing keeps it from being applied now: 1 Deployment rolls"},
	},
	{setting: "system-managed-csi-components-resource-limits", group: own, value: `{"longhorn-csi-plugin":{"limits":{"memory":"256Mi"}}}`, facts: attachedRWX, reason: ReasonApplies,
		warnings: []string{"accepted; nothing keeps it from being applied now: 1 DaemonSet rolls; CSI plugin pods restart each when no RWX volume is attached on its node"},
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
	{setting: "concurrent-backing-image-replenish-per-node-limit", group: own, value: "ten", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "ten": must be a whole number from 0 to 2147483647`},
	},
	{setting: "disable-snapshot-purge", group: system, value: "true", facts: noCleanup, reason: ReasonValid},
	{setting: "disable-snapshot-purge", group: system, value: "true", facts: idle, reason: ReasonContradicts,
		problems: []string{`value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "true": set that to "false" first`},
	},
	{setting: "disable-snapshot-purge", group: own, value: "true", facts: idle, reason: ReasonContradicts,
		problems: []string{`value: Forbidden: snapshots can't be kept from being purged while auto-cleanup-system-generated-snapshot is "true": set that to "false" first`},
	},
	{setting: "disable-snapshot-purge", group: system, value: "false", facts: idle, reason: ReasonValid},
	{setting: "disable-snapshot-purge", group: system, value: "never", facts: idle, reason: ReasonInvalidValue,
		problems: []string{`value: Invalid value: "never": must be "true" or "false"`},
	},

	// Names that are not Fairlead's to judge, are read-only, or are nobody's.
	{setting: "backup-target", group: system, value: "nfs://there", facts: idle, reason: ReasonValid},
	{setting: "current-longhorn-version", group: system, value: "v1.8.0", facts: idle, reason: ReasonValid},
	{setting: "current-longhorn-version", group: own, value: "v1.8.0", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting current-longhorn-version is read-only: longhorn writes it by itself"},
	},
	{setting: "default-engine-image", group: own, value: "mine", facts: idle, reason: ReasonReadOnly,
		problems: []string{"metadata.name: Forbidden: setting default-engine-image is read-only: longhorn writes it by itself"},
	},
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
		if facts.Own {
			facts.heed(settings.Name(row.setting), row.value)
		}
	}
	if change != nil {
		change(&s, &facts)
	}
	return ValidateSetting(s, &Setting{}, facts)
}

// heed has Fairlead's own value count: its own group has said what is in force, and
// Longhorn lacks the setting, or where only Longhorn builds or reads it, says the
// same. See TestWhatNobodyHeedsIsSaid.
func (f *SettingFacts) heed(name settings.Name, value string) {
	if was, set := f.SystemValues[name]; set && f.Values[name].Text == was {
		f.OwnValues[name] = was
	}
	delete(f.SystemValues, name)
	then := settings.Resolve(values{name: value}, f.SystemValues, f.Profile.Name)
	if settings.Unheeded(then, f.SystemValues, name, f.Profile.Name) != "" {
		f.SystemValues[name] = value
	}
}

// Fairlead's own value, where Longhorn 1.7 says otherwise or has no such setting,
// was announced to restart what came back as it was, or called in force.
func TestWhatNobodyHeedsIsSaid(t *testing.T) {
	const (
		otherwise = "accepted, but will not be applied: longhorn has %s itself, with %q, and goes by that: set it in settings.longhorn.io"
		lacks     = "accepted, but will not be applied: longhorn has no setting %s, and nobody else goes by it: upgrade longhorn to a version that has it (%s or later), and set it in settings.longhorn.io"
	)
	for _, row := range []settingRow{
		{setting: "priority-class", value: "system-node-critical", facts: attached, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "priority-class", "longhorn-critical")}},
		{setting: "guaranteed-instance-manager-cpu", value: "20", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "guaranteed-instance-manager-cpu", "12")}},
		{setting: "v1-data-engine", value: "false", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "v1-data-engine", "true")}},
		{setting: "disable-snapshot-purge", value: "true", facts: noCleanup, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "disable-snapshot-purge", "false")}},
		{setting: "concurrent-replica-rebuild-per-node-limit", value: "7", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "concurrent-replica-rebuild-per-node-limit", "5")}},
		{setting: "concurrent-backing-image-replenish-per-node-limit", value: "7", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(otherwise, "concurrent-backing-image-replenish-per-node-limit", "5")}},
		{setting: "instance-manager-pod-liveness-probe-timeout", value: "20", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(lacks, "instance-manager-pod-liveness-probe-timeout", "1.10")}},
		{setting: "log-path", value: "/var/log/longhorn", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(lacks, "log-path", "1.10")}},
		{setting: "data-engine-cpu-mask", value: "0xf", facts: idle, reason: ReasonNoEffect, warnings: []string{fmt.Sprintf(lacks, "data-engine-cpu-mask", "1.10")}},
		{setting: "engine-image-pod-liveness-probe-period", value: "10", facts: idle, reason: ReasonApplies, warnings: []string{engineImagesNow}},
		// The network of RWX volumes is Fairlead's to apply, and so it begins all the same.
		{setting: "storage-network", value: "kube-system/backup-net", facts: onNetwork, reason: ReasonApplies, warnings: []string{fmt.Sprintf(otherwise, "storage-network", "kube-system/storage-net"), rolling}},
		{setting: "storage-network-for-rwx-volume-enabled", value: "false", facts: onNetwork, reason: ReasonApplies, warnings: []string{rolling}},
		{setting: "priority-class", value: "longhorn-critical", facts: idle, reason: ReasonValid},
	} {
		t.Run(row.setting+"="+row.value, func(t *testing.T) {
			facts := situation(row.facts)
			facts.Own = true
			var s Setting
			s.Metadata.Name, s.Value = row.setting, &row.value
			checkVerdict(t, ValidateSetting(s, nil, facts), row.reason, row.problems, row.warnings)
		})
	}
}

// By a name that Longhorn has no more, while it goes by another: the two made idle
// instance managers anew, each for its own CPU.
func TestANameThatLonghornHasNoMoreComesToNothing(t *testing.T) {
	facts := situation(idle)
	facts.Own, facts.SystemValues[settings.SystemVersion] = true, "v1.10.0"
	delete(facts.SystemValues, settings.V2GuaranteedCPU)
	var s Setting
	value := "2000"
	s.Metadata.Name, s.Value = string(settings.V2GuaranteedCPU), &value
	checkVerdict(t, ValidateSetting(s, nil, facts), ReasonNoEffect, nil, []string{
		"accepted, but will not be applied: longhorn has no setting v2-data-engine-guaranteed-instance-manager-cpu, and goes by guaranteed-instance-manager-cpu: set that in settings.longhorn.io",
		"longhorn v1.10.0 does not know v2-data-engine-guaranteed-instance-manager-cpu any more (until 1.10)",
	})
}

// The table is only worth its name if it leaves nothing out.
func TestSettingTableHasEverySetting(t *testing.T) {
	for _, d := range settings.DangerZone() {
		accepted, refused, waits := false, false, false
		for _, row := range settingTable {
			if row.setting == string(d.Name) {
				refused = refused || len(row.problems) > 0
				accepted = accepted || len(row.problems) == 0 && row.reason != ReasonPending
				waits = waits || row.reason == ReasonPending
			}
		}
		if settings.ReadOnly(string(d.Name)) {
			if accepted || waits || !refused {
				t.Errorf("%s is read-only, and a row accepts it", d.Name)
			}
			continue
		}
		if !accepted || !refused || waits != (d.Gate != settings.AtOnce) {
			t.Errorf("%s: a row that is accepted %t, refused %t, pending %t; its gate: %s", d.Name, accepted, refused, waits, d.Gate)
		}
	}
}

// Who changes Fairlead's own setting and who changes the storage system's reads the same.
func TestSettingTableIsTheSameInBothGroups(t *testing.T) {
	for _, row := range settingTable {
		if _, known := settings.Lookup(row.setting); !known || !situation(row.facts).Applies || row.facts == ownSaysSo {
			continue // the groups differ there
		}
		other := row
		if other.group = own; row.group == own {
			other.group = system
		}
		if row.value == withdrawn || situation(row.facts).Values[settings.Name(row.setting)].Source == settings.SourceFairlead {
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
	cantBe := func(name settings.Name, byDefault string) []string {
		return []string{fmt.Sprintf("metadata.name: Forbidden: setting %s can be changed but not deleted; set its value to %q, the default, instead", name, byDefault)}
	}
	for _, row := range []struct {
		setting            settings.Name
		group, facts       string
		reason             string
		problems, warnings []string
	}{
		// The storage system's: never.
		{setting: settings.PriorityClass, group: system, facts: idle, reason: ReasonNotDeletable, problems: cantBe("priority-class", "")},
		{setting: settings.GuaranteedCPU, group: system, facts: attached, reason: ReasonNotDeletable, problems: cantBe("guaranteed-instance-manager-cpu", "12")},
		{setting: settings.DataEngineCPUMask, group: system, facts: idle, reason: ReasonNotDeletable, problems: cantBe("data-engine-cpu-mask", `{"v2":"0x3"}`)},
		{setting: "backup-target", group: system, facts: idle, reason: ReasonValid},
		// Fairlead's own: then the storage system's value is in force, or the default.
		{setting: settings.PriorityClass, group: own, facts: idle, reason: ReasonValid},
		{setting: settings.PriorityClass, group: own, facts: ownSaysSo, reason: ReasonApplies,
			warnings: []string{`priority-class is "longhorn-critical" from now on (as the setting of longhorn says)`, allNow},
		},
		{setting: settings.GuaranteedCPU, group: own, facts: ownSaysSo, reason: ReasonValid},
		{setting: settings.EndpointNetworkForRWX, group: own, facts: endpointSet, reason: ReasonValid,
			warnings: []string{`endpoint-network-for-rwx-volume is "" from now on (the default)`},
		},
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
	for _, d := range settings.All() {
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
	for _, d := range settings.DangerZone() {
		if !strings.Contains(everyName(), fmt.Sprintf("%q", d.Name)) {
			t.Errorf("%s is not offered", d.Name)
		}
	}
}

// TestOverrideTable is the breaking of the glass: alice asks for the gate of
// priority-class to be overridden while a volume is attached.
func TestOverrideTable(t *testing.T) {
	const class, why = "system-node-critical", "node-1 must go before noon"
	record := func(by, reason, value string) string {
		return settings.Override{By: by, Reason: reason, Value: value, At: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}.Text()
	}
	const (
		request  = settings.OverrideAnnotation
		recorded = settings.OverriddenAnnotation
		pending  = "accepted; 4 instance managers restart one by one now; the rest when these volumes are detached: pvc-1 (node-1, pod default/db-0). " +
			"Then 4 Deployments and 2 DaemonSets roll, 1 backing image manager and 2 instance managers restart"
		hurts       = "its gate is overridden: 2 pods in use will be restarted (im-v1-node-1, im-v1-node-2); volumes on them will stop or fail over"
		notHis      = `metadata.annotations[fairlead.io/gate-overridden]: Forbidden: must be as Fairlead's mutating webhook writes it: leave it out`
		notRecorded = `metadata.annotations[fairlead.io/override-gate]: Forbidden: who overrides the gate was not written down: there is no value to override it for, or Fairlead's mutating webhook did not answer; try again`
		usedBefore  = `metadata.annotations[fairlead.io/override-gate]: Forbidden: this override was used before: give a new reason (and do not keep the annotation in files that are applied again)`
		mayNot      = `metadata.annotations[fairlead.io/override-gate]: Forbidden: alice may not override gates: that takes the verb "override-gate" on settings.fairlead.io (ClusterRole fairlead-break-glass); without it, the setting is applied when nothing is hurt`
		sayWhy      = `metadata.annotations[fairlead.io/override-gate]: Required value: say why the gate is to be overridden`
		forRecord   = `metadata.annotations[fairlead.io/gate-overridden]: Forbidden: is written by Fairlead and stays for the record: leave it as it is`
	)
	type notes = map[string]string
	asked := notes{request: why, recorded: record("alice", why, class)}
	for name, row := range map[string]struct {
		notes, before      notes
		value              string
		mayNot             bool
		reason             string
		problems, warnings []string
	}{
		"with the right to, and recorded by the mutating webhook": {notes: asked, value: class, reason: ReasonApplies, warnings: []string{allNow, hurts}},
		"without the right to":               {notes: asked, value: class, mayNot: true, reason: ReasonOverride, problems: []string{mayNot}},
		"without a reason":                   {notes: notes{request: "", recorded: record("alice", "", class)}, value: class, reason: ReasonOverride, problems: []string{sayWhy}},
		"without a record":                   {notes: notes{request: why}, value: class, reason: ReasonOverride, problems: []string{notRecorded}},
		"with somebody else's name":          {notes: notes{request: why, recorded: record("bob", why, class)}, value: class, reason: ReasonOverride, problems: []string{notHis}},
		"with a record of another value":     {notes: notes{request: why, recorded: record("alice", why, "longhorn-critical")}, value: class, reason: ReasonOverride, problems: []string{notHis}},
		"with a record of another reason":    {notes: notes{request: why, recorded: record("alice", "else", class)}, value: class, reason: ReasonOverride, problems: []string{notHis}},
		"with a record that can't be read":   {notes: notes{request: why, recorded: "alice"}, value: class, reason: ReasonOverride, problems: []string{notHis}},
		"a record and no request":            {notes: notes{recorded: record("alice", why, class)}, value: class, reason: ReasonOverride, problems: []string{forRecord}},
		"the record is changed":              {notes: notes{recorded: record("bob", why, class)}, before: notes{recorded: record("alice", why, class)}, value: class, reason: ReasonOverride, problems: []string{forRecord}},
		"the record is taken away":           {before: notes{recorded: record("alice", why, class)}, value: class, reason: ReasonOverride, problems: []string{forRecord}},
		"another value, the record is stale": {notes: notes{request: why, recorded: record("alice", why, "longhorn-critical")}, before: notes{request: why, recorded: record("alice", why, "longhorn-critical")}, value: class, reason: ReasonPending, warnings: []string{pending}},
		"the request is taken away by one who may not make it": {
			notes: notes{recorded: asked[recorded]}, before: asked, value: class, mayNot: true, reason: ReasonPending, warnings: []string{pending},
		},
		"asked for before, and the value comes back to it, by one who may not": {notes: asked, before: asked, value: class, mayNot: true, reason: ReasonOverride, problems: []string{mayNot}},
		"asked for before, and the value comes back to it":                     {notes: asked, before: asked, value: class, reason: ReasonApplies, warnings: []string{allNow, hurts}},
		"asked for once more": {notes: asked, before: notes{recorded: asked[recorded]}, value: class, reason: ReasonOverride, problems: []string{usedBefore}},
		"no override makes a class exist": {
			notes: notes{request: why, recorded: record("alice", why, "fast")}, value: "fast", reason: ReasonNoSuchClass,
			problems: []string{`value: Invalid value: "fast": there is no PriorityClass of that name (in this cluster: longhorn-critical, system-cluster-critical, system-node-critical), and no pod of it would start; create it first`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, group := range []string{own, system} {
				facts := situation(attached)
				facts.Own, facts.MayOverride = group == own, !row.mayNot
				var s, old Setting
				s.Metadata.Name, s.Metadata.Annotations, s.Value = "priority-class", row.notes, &row.value
				old.Metadata.Annotations = row.before
				if facts.Own {
					facts.heed(settings.PriorityClass, row.value)
				}
				v := ValidateSetting(s, &old, facts)
				checkVerdict(t, v, row.reason, row.problems, row.warnings)
			}
		})
	}
}

// A data engine is switched off under its volumes only by breaking the glass.
func TestOverrideOfADataEngine(t *testing.T) {
	row := settingRow{setting: "v1-data-engine", group: system, value: "false", facts: attached}
	v := judge(row, func(s *Setting, facts *SettingFacts) {
		facts.MayOverride = true
		s.Metadata.Annotations = map[string]string{
			settings.OverrideAnnotation:   "moving to v2",
			settings.OverriddenAnnotation: settings.Override{By: "alice", Reason: "moving to v2", Value: "false"}.Text(),
		}
	})
	checkVerdict(t, v, ReasonApplies, nil, []string{
		"accepted; nothing keeps it from being applied now: 3 instance managers are removed",
		"its gate is overridden: 2 pods in use will be removed (im-v1-node-1, im-v1-node-2); volumes on them will stop or fail over",
	})
}

// Longhorn's value is not in force while Fairlead's own holds one: then its gate is
// not the one that is looked at, and nothing restarts.
func TestAnOverrideBelongsInTheGroupInForce(t *testing.T) {
	const class = "system-node-critical"
	facts := situation(attached)
	facts.MayOverride = true
	facts.OwnValues[settings.PriorityClass], facts.SystemValues[settings.PriorityClass] = class, class
	value := class
	var s, old Setting
	s.Metadata.Name, s.Value, old.Value = "priority-class", &value, &value
	s.Metadata.Annotations = map[string]string{
		settings.OverrideAnnotation:   "INC-123",
		settings.OverriddenAnnotation: settings.Override{By: "alice", Reason: "INC-123", Value: class}.Text(),
	}
	const elsewhere = "overrides no gate: settings.fairlead.io priority-class is in force; annotate that, or take its value back"
	checkVerdict(t, ValidateSetting(s, &old, facts), ReasonValid, nil, []string{elsewhere})

	facts.OwnValues[settings.PriorityClass] = "system-cluster-critical" // nobody heeds it: to annotate it is of no use
	const disputed = "overrides no gate: settings.fairlead.io priority-class is in force; take its value back"
	if v := ValidateSetting(s, &old, facts); len(v.Problems) > 0 || !slices.Contains(v.Warnings, disputed) {
		t.Errorf("beside a disputed value: %v, %q", v.Problems, v.Warnings)
	}

	facts.Own, facts.OwnValues[settings.PriorityClass] = true, class
	if v := ValidateSetting(s, &old, facts); v.Reason != ReasonApplies || len(v.Warnings) != 2 || !strings.HasPrefix(v.Warnings[1], "its gate is overridden") {
		t.Errorf("in Fairlead's own: %s, %q", v.Reason, v.Warnings)
	}
}

// A refusal is overridden only where the override counts, and is recorded and told: in
// the group whose value is in force. What Fairlead's own holds is taken back first.
func TestOverrideOfADataEngineBesideFairleadsOwn(t *testing.T) {
	facts := situation(attached)
	facts.MayOverride = true
	facts.OwnValues[settings.V1DataEngine] = "true"
	on, off := "true", "false"
	var s, old Setting
	s.Metadata.Name, s.Value, old.Value = "v1-data-engine", &off, &on
	s.Metadata.Annotations = map[string]string{
		settings.OverrideAnnotation:   "moving to v2",
		settings.OverriddenAnnotation: settings.Override{By: "alice", Reason: "moving to v2", Value: "false"}.Text(),
	}
	checkVerdict(t, ValidateSetting(s, &old, facts), ReasonEngineInUse, []string{
		"value: Forbidden: the v1 data engine can't be switched off while 1 volume of it is attached: pvc-1 (node-1, pod default/db-0); stop what uses it, then try again",
		"metadata.annotations[fairlead.io/override-gate]: Forbidden: overrides no gate: settings.fairlead.io v1-data-engine is in force; take its value back",
	}, nil)

	var back Setting
	back.Metadata.Name = "v1-data-engine"
	own := facts
	own.Own = true
	checkVerdict(t, ValidateSetting(back, &Setting{Value: &on}, own), ReasonValid, nil, nil)
	delete(facts.OwnValues, settings.V1DataEngine)
	if v := ValidateSetting(s, &old, facts); v.Reason != ReasonApplies || len(v.Problems) > 0 {
		t.Errorf("then: %s, %v", v.Reason, v.Problems)
	}
}

// Longhorn goes by its own group whatever Fairlead's says: what is refused there
// is refused beside a value of Fairlead's too.
func TestRefusalsAreOfTheValueThatIsWritten(t *testing.T) {
	override := map[string]string{
		settings.OverrideAnnotation:   "moving to v2",
		settings.OverriddenAnnotation: settings.Override{By: "alice", Reason: "moving to v2", Value: "false"}.Text(),
	}
	for name, row := range map[string]struct {
		setting       settings.Name
		own, is, then string
		notes         map[string]string
		reason        string
	}{
		"a data engine off":                     {settings.V1DataEngine, "true", "true", "false", nil, ReasonEngineInUse},
		"and Fairlead's own says so already":    {settings.V1DataEngine, "false", "true", "false", nil, ReasonEngineInUse},
		"by one who breaks the glass":           {settings.V1DataEngine, "true", "true", "false", override, ReasonEngineInUse},
		"it is off":                             {settings.V1DataEngine, "true", "false", "false", nil, ReasonValid},
		"a data engine on":                      {settings.V1DataEngine, "false", "false", "true", nil, ReasonValid},
		"a class that is not there":             {settings.PriorityClass, "system-node-critical", "", "fast", nil, ReasonNoSuchClass},
		"a class that is":                       {settings.PriorityClass, "system-node-critical", "", "longhorn-critical", nil, ReasonValid},
		"a class that is gone since, and stays": {settings.PriorityClass, "system-node-critical", "fast", "fast", nil, ReasonValid},
	} {
		t.Run(name, func(t *testing.T) {
			facts := situation(attached)
			facts.MayOverride = true
			facts.OwnValues[row.setting], facts.SystemValues[row.setting] = row.own, row.is
			facts.Overridden = map[settings.Name]bool{row.setting: row.own == "false"} // for Fairlead's own
			var s Setting
			s.Metadata.Name, s.Metadata.Annotations, s.Value = string(row.setting), row.notes, &row.then
			v := ValidateSetting(s, &Setting{Value: &row.is}, facts)
			if refused := len(v.Problems) > 0; v.Reason != row.reason || refused != (row.reason != ReasonValid) || refused && len(v.Warnings) > 0 {
				t.Errorf("%s: %v, %q", v.Reason, v.Problems, v.Warnings)
			}
		})
	}
}

// Who gives a value up writes none, and who says what is in force already changes
// none: what was not refused when it came is not refused then, whatever is gone since.
func TestOnlyAValueThatIsWrittenIsRefused(t *testing.T) {
	for name, row := range map[string]struct {
		setting   settings.Name
		own, then string // withdrawn is none
		system    string
		reason    string
	}{
		"null, and Longhorn's class is gone too":       {settings.PriorityClass, "fast", withdrawn, "fast", ReasonPending},
		"null, disputed, and Longhorn's class is gone": {settings.PriorityClass, "longhorn-critical", withdrawn, "fast", ReasonPending},
		"null, disputed, and Longhorn's engine is off": {settings.V1DataEngine, "true", withdrawn, "false", ReasonPending},
		"null, disputed, and Longhorn does both":       {settings.DisableSnapshotPurge, "false", withdrawn, "true", ReasonValid},
		"the same text from the other source":          {settings.PriorityClass, withdrawn, "fast", "fast", ReasonPending},
		"the same engine off":                          {settings.V1DataEngine, withdrawn, "False", "false", ReasonPending},
		"another, and that class is not there":         {settings.PriorityClass, withdrawn, "slow", "fast", ReasonNoSuchClass},
		"another, and Longhorn's engine is on":         {settings.V1DataEngine, withdrawn, "false", "true", ReasonEngineInUse},
	} {
		t.Run(name, func(t *testing.T) {
			facts := situation(attached)
			facts.Own, facts.SystemValues[row.setting] = true, row.system
			if row.own != withdrawn {
				facts.OwnValues[row.setting] = row.own
			}
			var s, old Setting
			s.Metadata.Name = string(row.setting)
			if row.then != withdrawn {
				s.Value = &row.then
			}
			old.Value = &row.own
			check := func(how string, v Verdict) {
				refused := row.reason == ReasonNoSuchClass || row.reason == ReasonEngineInUse
				if v.Reason != row.reason || len(v.Problems) > 0 != refused {
					t.Errorf("%s: %s: %v, %q", how, v.Reason, v.Problems, v.Warnings)
				}
			}
			check("changed", ValidateSetting(s, &old, facts))
			if row.then == withdrawn {
				check("deleted", ValidateSettingDeletion(s.Metadata.Name, facts))
			}
		})
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
