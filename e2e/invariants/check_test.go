package invariants

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// Each scenario breaks one invariant, or none where want is empty.
func TestViolationsAreFound(t *testing.T) {
	endpoint := func(w *world, text string) {
		w.write(lhuser, "update", &longhorn.ShareManager{ObjectMeta: at("v"), Status: longhorn.ShareManagerStatus{Endpoint: text}})
	}
	manager := func(w *world) *corev1.Pod {
		return w.pod("instance-manager-1", "node-1", names.InstanceManagerLabels, "InstanceManager", onA, "192.168.50.3")
	}
	workload := func(w *world, owned bool) *corev1.Pod {
		pod := w.pod("web", "node-1", nil, "ReplicaSet", "", "")
		pod.Namespace = "default"
		if !owned {
			pod.OwnerReferences = nil
		}
		w.write("replicaset-controller", "create", pod)
		return pod
	}
	mounted := func(w *world) {
		pod := w.pod("web", "node-1", nil, "ReplicaSet", "", "")
		pod.Namespace, pod.Status.Phase = "default", corev1.PodRunning
		pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "v"}}}}
		w.write("kwok", "update", pod)
	}
	evict := func(w *world, pod *corev1.Pod) {
		w.writes = append(w.writes, sandbox.Write{At: w.at.Add(time.Second), User: fairlead, Verb: "create", Resource: "pods/eviction", Namespace: pod.Namespace, Name: pod.Name, Code: 201, Changed: true})
	}
	patched := func(w *world, pod *corev1.Pod, patches ...string) *sandbox.Write {
		e := w.write(lhuser, "create", pod)
		e.Request, e.Annotations = e.Response, map[string]string{}
		for i, p := range patches {
			e.Annotations[fmt.Sprintf("patch.webhook.admission.k8s.io/round_%d_index_4", i)] = `{"configuration":"fairlead","webhook":"pods","patch":[` + p + `]}`
		}
		return e
	}
	plain := func(w *world) *corev1.Pod { return w.pod("im", "node-1", nil, "InstanceManager", "", "") }

	for name, test := range map[string]struct {
		invariant int
		network   string // that all begins on
		do        func(*world)
		want      string
	}{
		"a server on the network of all clients": {1, onA, func(w *world) { w.server(onA) }, ""},
		"a server on a network without clients":  {1, "", func(w *world) { w.server(onA) }, "client csi-node-1 does not ask for it"},
		"a client comes up without the network":  {1, onA, func(w *world) { w.server(onA); w.client("late", "node-3", "") }, "client late does not ask"},
		"a server before a client has its address": {1, onA, func(w *world) {
			w.write("", "create", w.pod("c", "node-3", names.ClientLabels, "DaemonSet", onA, ""))
			w.server(onA)
		}, "client c has no address"},
		"a server on the cluster network of a volume":    {1, "", func(w *world) { w.server("") }, ""},
		"a server without the network of its Service":    {2, onA, func(w *world) { w.server("") }, "has cluster IP None"},
		"a server with a network, and with a cluster IP": {2, "", func(w *world) { w.server(onA) }, "has cluster IP 10.96.0.9"},
		"a Service comes that is not the server's": {2, "", func(w *world) {
			w.server("")
			w.remove(fairlead, service(""))
			s := service(onA)
			s.UID = "2"
			w.write(fairlead, "create", s)
		}, "has cluster IP None"},
		"the endpoint of a headless Service":   {2, onA, func(w *world) { endpoint(w, "nfs://v.longhorn-system.svc.cluster.local/v") }, ""},
		"the endpoint of no address":           {2, onA, func(w *world) { endpoint(w, "nfs://None/v") }, "is nfs://None/v, want nfs://v.longhorn-system"},
		"the endpoint of a cluster IP by name": {2, "", func(w *world) { endpoint(w, "nfs://v.longhorn-system.svc.cluster.local/v") }, "want nfs://10.96.0.9/v"},

		"a reported address is published":  {3, onA, func(w *world) { w.server(onA); w.write(fairlead, "create", slice(address)) }, ""},
		"a pod's own address is published": {3, onA, func(w *world) { w.server(onA); w.write(fairlead, "create", slice("10.244.1.9")) }, "no Ready server of the volume has: v 10.244.1.9"},
		"an address that has just gone":    {3, onA, func(w *world) { p := w.server(onA); w.remove("kwok", p); w.write(fairlead, "create", slice(address)) }, ""},
		"an address that is long gone": {3, onA, func(w *world) {
			p := w.server(onA)
			w.remove("kwok", p)
			w.pass(time.Minute)
			w.write(fairlead, "create", slice(address))
		}, "address published"},
		"an address stays, published by Longhorn": {3, onA, func(w *world) {
			p := w.server(onA)
			w.write(lhuser, "create", slice(address))
			w.write("kwok", "update", terminating(p))
			w.pass(time.Minute)
			w.rollout(onA, onA, "Applied")
			w.rollout(onA, onA, "Applied")
		}, "v-1 has an address that no Ready server of the volume has: v " + address + " for longer than"},
		"an address of the cluster network stays with a network's Service": {3, "", func(w *world) {
			w.write(lhuser, "create", classic("10.244.1.9"))
			w.write(fairlead, "update", service(onA))
			w.pass(time.Minute)
			w.rollout("", "", "Applied")
			w.rollout("", "", "Applied")
		}, "Endpoints v has an address that no Ready server"},
		"an address goes with its Service": {3, "", func(w *world) {
			w.write(lhuser, "create", classic("10.244.1.9"))
			w.remove(fairlead, service(""))
			w.write(fairlead, "create", service(onA))
			w.pass(time.Minute)
			w.rollout("", "", "Applied")
			w.rollout("", "", "Applied")
		}, ""},
		"an address of the cluster network is Kubernetes'": {3, "", func(w *world) {
			w.write("endpointslice-controller", "create", slice("10.244.1.9"))
			w.pass(time.Minute)
			w.rollout("", "", "Applied")
		}, ""},

		"a client is restarted under a volume": {4, onA, func(w *world) {
			p := w.client("c", "node-1", onA)
			w.attach()
			w.write(lhuser, "delete", terminating(p))
		}, "pod c is deleted under [v]"},
		"by a user":                    {4, onA, func(w *world) { p := w.client("c", "node-1", onA); w.attach(); w.remove("admin", p) }, ""},
		"on a node without the volume": {4, onA, func(w *world) { p := w.client("c", "node-2", onA); w.attach(); w.remove(lhuser, p) }, ""},
		"after the volume was detached": {4, onA, func(w *world) {
			p := w.client("c", "node-1", onA)
			w.attach()
			w.remove("", attachment())
			w.remove(lhuser, p)
		}, ""},
		"an instance manager in use":    {4, onA, func(w *world) { p := manager(w); w.write(lhuser, "create", p); w.attach(); w.remove(lhuser, p) }, "instance-manager-1 is deleted under [v]"},
		"an idle instance manager":      {4, onA, func(w *world) { p := manager(w); w.write(lhuser, "create", p); w.remove(lhuser, p) }, ""},
		"a server that did not come up": {4, onA, func(w *world) { w.attach(); w.remove(lhuser, w.server(onA)) }, ""},
		"a volume that has just been attached": {4, onA, func(w *world) {
			p := w.server(onA)
			w.attach()
			w.remove("", attachment())
			w.write("", "create", attachment())
			w.remove(lhuser, p)
		}, ""},
		"the server of an attached volume":     {4, onA, func(w *world) { p := w.server(onA); w.attach(); w.remove(lhuser, p) }, "share-manager-v is deleted under [v]"},
		"a server that Fairlead repairs":       {4, onA, func(w *world) { p := w.server(onA); w.attach(); w.remove(fairlead, p) }, ""},
		"a server that a workload has mounted": {4, onA, func(w *world) { p := w.server(onA); mounted(w); w.attach(); w.remove(fairlead, p) }, "share-manager-v is deleted under [v]"},
		"the Service of an attached volume":    {4, onA, func(w *world) { w.attach(); w.remove(lhuser, service(onA)) }, "the Service of attached volume v is deleted"},
		"clients move while nothing is attached": {5, "", func(w *world) {
			w.setting("admin", storageNetworkForRWX, "true", false)
			w.rollout(onA, "", "RollingClients")
		}, ""},
		"clients move while a volume is attached": {5, "", func(w *world) {
			w.attach()
			w.setting("admin", storageNetworkForRWX, "true", false)
			w.rollout(onA, "", "RollingClients")
		}, "while [v] are attached"},
		"clients move where no setting says": {5, "", func(w *world) { w.rollout(onA, "", "RollingClients") }, `the settings say ""`},
		"a template ahead of the record":     {5, "", func(w *world) { w.write(fairlead, "patch", plugin(onA)) }, `the record says ""`},
		"a template for a closed gate": {5, onA, func(w *world) {
			w.attach()
			ds := plugin(onA)
			ds.Spec.Template.Spec.PriorityClassName = "high"
			w.write(fairlead, "patch", ds)
		}, "follows priority-class while [v] are attached"},
		"a client is restarted that is up to date": {5, onA, func(w *world) { w.remove(fairlead, w.client("c", "node-3", onA)) }, "of the present template"},
		"a client is restarted for its network":    {5, onA, func(w *world) { w.remove(fairlead, w.client("c", "node-3", "")) }, ""},
		"a pod is restarted while all is applied": {5, onA, func(w *world) {
			w.ownSetting("priority-class", "", true)
			p := manager(w)
			w.write(lhuser, "create", p)
			w.remove(fairlead, p)
		}, "every setting is applied"},
		"a pod is restarted for a setting": {5, onA, func(w *world) {
			w.ownSetting("priority-class", "", false)
			p := manager(w)
			w.write(lhuser, "create", p)
			w.remove(fairlead, p)
		}, ""},
		"applied while a client is elsewhere": {6, "", func(w *world) {
			w.setting("admin", storageNetworkForRWX, "true", false)
			w.pass(time.Minute)
			w.setting(fairlead, storageNetworkForRWX, "true", true)
		}, `pod csi-node-1 has ""`},
		"applied once all clients are there": {6, onA, func(w *world) {
			w.setting("admin", storageNetworkForRWX, "true", false)
			w.pass(time.Minute)
			w.setting(fairlead, storageNetworkForRWX, "true", true)
		}, ""},
		"Longhorn says applied while clients leave": {6, onA, func(w *world) {
			w.setting("admin", storageNetworkForRWX, "false", false)
			w.pass(time.Minute)
			w.setting(lhuser, storageNetworkForRWX, "false", true)
		}, ""},
		"Fairlead says applied while clients leave": {6, onA, func(w *world) {
			w.setting("admin", storageNetworkForRWX, "false", false)
			w.pass(time.Minute)
			w.setting(fairlead, storageNetworkForRWX, "false", true)
		}, `pod csi-node-1 has "` + onA},
		"applied while an instance manager is": {6, onA, func(w *world) {
			w.write(lhuser, "create", manager(w))
			w.setting("admin", storageNetwork, "", false)
			w.pass(time.Minute)
			w.setting(fairlead, storageNetwork, "", true)
		}, "storage-network is applied"},
		"Fairlead's own is applied too early": {6, onA, func(w *world) {
			w.setting("admin", "priority-class", "high", false)
			w.pass(time.Minute)
			w.ownSetting("priority-class", "high", false)
			w.ownSetting("priority-class", "high", true)
		}, `priority-class is applied with "high"`},
		"Fairlead's own stays applied": {6, onA, func(w *world) {
			w.ownSetting(storageNetworkForRWX, "true", true)
			w.setting("admin", storageNetworkForRWX, "false", false)
			w.pass(time.Minute)
			w.server(onA)
			w.server(onA)
		}, "for longer than"},
		"the rollout is reported done with clients left": {6, "", func(w *world) {
			w.rollout(onA, onA, "SwitchingServers")
			w.pass(time.Minute)
			w.rollout(onA, onA, "Applied")
		}, `the rollout is applied with "` + onA},
		"the rollout is reported done with servers left": {6, onA, func(w *world) {
			w.rollout(onA, "", "SwitchingServers")
			w.pass(time.Minute)
			w.rollout(onA, "", "Applied")
		}, `servers ""`},

		"a workload older than its client": {8, onA, func(w *world) {
			p := workload(w, true)
			w.remove("admin", w.client("csi-node-1", "node-1", onA))
			w.client("c", "node-1", onA)
			evict(w, p)
		}, ""},
		"a workload younger than its client":    {8, onA, func(w *world) { evict(w, workload(w, true)) }, "client csi-node-1 began before"},
		"a workload that nothing creates again": {8, onA, func(w *world) { p := workload(w, false); w.client("csi-node-1", "node-1", onA); evict(w, p) }, "nothing creates it again"},
		"a workload twice": {8, onA, func(w *world) {
			p := workload(w, true)
			w.client("csi-node-1", "node-1", onA)
			evict(w, p)
			evict(w, p)
		}, "evicted twice"},
		"a workload while its client is down": {8, onA, func(w *world) {
			p := workload(w, true)
			c := w.client("csi-node-1", "node-1", onA)
			c.Status.Conditions = nil
			w.write("kwok", "update", c)
			evict(w, p)
		}, "not Ready"},
		"a workload on a node without a client": {8, onA, func(w *world) {
			p := workload(w, true)
			w.remove("admin", w.client("csi-node-1", "node-1", onA))
			evict(w, p)
		}, "has no client"},
		"a client's new sandbox kills its mounts": {8, onA, func(w *world) {
			p := workload(w, true)
			c := w.client("csi-node-1", "node-1", onA)
			c.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(-time.Minute))
			c.Status.Conditions = append(c.Status.Conditions, corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.at)})
			w.write("kwok", "update", c)
			evict(w, p)
		}, ""},

		"a webhook adds an annotation": {9, "", func(w *world) { patched(w, plain(w), `{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}`) }, ""},
		"a webhook changes twice": {9, "", func(w *world) {
			p := `{"op":"add","path":"/metadata/annotations","value":{"a":"b"}}`
			patched(w, plain(w), p, p)
		}, "changes the object twice"},
		"a webhook writes a present value":  {9, "", func(w *world) { patched(w, plain(w), `{"op":"replace","path":"/spec/nodeName","value":"node-1"}`) }, "the present value at /spec/nodeName"},
		"a webhook writes a section":        {9, "", func(w *world) { patched(w, plain(w), `{"op":"replace","path":"/spec","value":{}}`) }, `writes all of "/spec"`},
		"what a webhook changed is refused": {9, "", func(w *world) { patched(w, plain(w), `{"op":"add","path":"/spec/x","value":1}`).Code = 422 }, "is not valid"},
		"a network is asked for twice": {9, "", func(w *world) {
			p := plain(w)
			p.Annotations = map[string]string{multus.NetworksAnnotation: onA + "," + onA}
			w.write(lhuser, "create", p)
		}, "is asked for twice"},
		"the networks annotation can't be read": {9, "", func(w *world) {
			p := plain(w)
			p.Annotations = map[string]string{multus.NetworksAnnotation: "[{"}
			w.write(lhuser, "create", p)
		}, "not a network selection"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.network)
			began := w.at.Add(time.Millisecond)
			test.do(w)
			var found []string
			for _, v := range Check(w.writes, Options{From: began}) {
				if v.Invariant == test.invariant {
					found = append(found, v.String())
				}
			}
			if text := strings.Join(found, "\n"); !strings.Contains(text, test.want) || test.want == "" && text != "" {
				t.Errorf("found\n%s\nwant %q", text, test.want)
			}
		})
	}
}

func TestNothingIsCheckedWithoutFairlead(t *testing.T) {
	w := newWorld(t, "")
	w.write("admin", "delete", &v1alpha1.NetworkRollout{ObjectMeta: metav1.ObjectMeta{Name: "networkrollouts.fairlead.io"}})
	w.server(onA)
	if found := Check(w.writes, Options{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// Longhorn 1.7 has no setting for the timeout of the probe, and builds with a timeout of its own.
func TestDefaultsOfSettingsThatLonghornLacksAreNotChecked(t *testing.T) {
	w := newWorld(t, "")
	pod := w.pod("instance-manager-1", "node-1", names.InstanceManagerLabels, "", "", "")
	pod.Spec.Containers = []corev1.Container{{LivenessProbe: &corev1.Probe{TimeoutSeconds: 4}}}
	w.write(lhuser, "update", pod)
	w.ownSetting("instance-manager-pod-liveness-probe-timeout", "10", false)
	w.pass(time.Minute)
	w.ownSetting("instance-manager-pod-liveness-probe-timeout", "10", true)
	if found := Check(w.writes, Options{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

// The answer to the deletion of many has the objects of before.
func TestDeletionOfManyIsReplayedWhenItWasAnswered(t *testing.T) {
	w := newWorld(t, onA)
	pod := w.client("csi-late", "node-3", onA)
	before := w.writes[len(w.writes)-1].Response
	w.pass(time.Minute)
	w.setting("admin", storageNetwork, netA, true)
	many := w.write("admin", "deletecollection", pod)
	many.Response = []byte(`{"items":[` + string(before) + `]}`)
	at := many.At
	w.server(onA)
	events := inOrder(w.writes)
	if last := events[len(events)-2]; last.Verb != "delete" || last.Name != "csi-late" || last.At != at {
		t.Errorf("before the last is %s", last)
	}
	if found := Check(w.writes, Options{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}

func TestNodeGateLetsClientsMoveUnderVolumes(t *testing.T) {
	w := newWorld(t, "")
	w.attach()
	w.setting("admin", storageNetworkForRWX, "true", false)
	w.rollout(onA, "", "RollingClients")
	for gate, want := range map[bool]int{false: 1, true: 0} {
		if found := Check(w.writes, Options{NodeGate: gate}); len(found) != want {
			t.Errorf("node gate %v: found %v", gate, found)
		}
	}
}

// The record is in the order of answers, which may cross.
func TestWritesAreReplayedInOrderOfVersions(t *testing.T) {
	w := newWorld(t, "")
	n := len(w.writes)
	w.remove("", w.client("csi-node-1", "node-1", ""))
	w.remove("", w.client("csi-node-2", "node-2", ""))
	w.client("csi-node-1", "node-1", onA)
	w.client("csi-node-2", "node-2", onA)
	w.remove("", service(""))
	s := service(onA)
	s.UID = "2"
	w.write("", "create", s)
	w.server(onA)
	last := w.writes[len(w.writes)-1]
	w.writes = append(w.writes[:n:n], append([]sandbox.Write{last}, w.writes[n:len(w.writes)-1]...)...)
	if found := Check(w.writes, Options{}); len(found) > 0 {
		t.Errorf("found %v", found)
	}
}
