package reads

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const (
	eth0   = `{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "mac": "02:00:00:00:00:01", "default": true}`
	lhnet1 = `{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "02:00:00:00:00:02"}`
)

func withAddresses(status string, ips ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{multus.NetworkStatusAnnotation: status}
		for _, ip := range ips {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

// noted is a namespace on record since second 5.
const noted = `{"identity":"0123","since":"2026-01-01T12:00:05Z"}`

func TestAddressesIdentifyANetworkNamespace(t *testing.T) {
	const both = "[" + eth0 + ", " + lhnet1 + "]"
	base := withAddresses(both, "10.42.0.7", "fd42::7")
	status := func(text string) func(*corev1.Pod) { return withAddresses(text, "10.42.0.7", "fd42::7") }
	secondInterface := func(ip, mac string) func(*corev1.Pod) {
		return status(`[` + eth0 + `, {"name": "kube-system/one", "interface": "lhnet1", "ips": ["` + ip + `"], "mac": "` + mac + `", "dns": {}, "mtu": 1500}]`)
	}
	unrelated := func(pod *corev1.Pod) {
		base(pod)
		pod.Labels, pod.ResourceVersion, pod.Status.Phase = map[string]string{"a": "b"}, "7", corev1.PodPending
		pod.Annotations["c"], pod.Annotations[rwx.NamespaceAnnotation] = "d", "2026-01-01T12:00:00Z/x"
	}
	for name, test := range map[string]struct {
		pod  func(*corev1.Pod)
		same bool
	}{
		"interfaces in another order": {status("[" + lhnet1 + "," + eth0 + "]"), true},
		"pod IPs in another order":    {withAddresses(both, "fd42::7", "10.42.0.7"), true},
		"other fields of Multus":      {secondInterface("192.168.0.3", "02:00:00:00:00:02"), true},
		"other fields of the pod":     {unrelated, true},
		"another MAC":                 {secondInterface("192.168.0.3", "02:00:00:00:00:03"), false},
		"another address":             {secondInterface("192.168.0.4", "02:00:00:00:00:02"), false},
		"another pod IP":              {withAddresses(both, "10.42.0.8", "fd42::7"), false},
		"one interface more":          {status("[" + eth0 + ", " + lhnet1 + `, {"name": "kube-system/x", "interface": "net1"}]`), true},
		"one interface less":          {status("[" + eth0 + "]"), true},
		"another interface":           {status("[" + eth0 + `, {"name": "kube-system/x", "interface": "net1"}]`), false},
		"no status":                   {status(""), true},
		"broken status":               {status("[{"), true},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := workloadPod(base), workloadPod(test.pod)
			was, is := identity(one, reportedBy(one)), identity(other, reportedBy(other))
			must.True(t, (rwx.NetworkNamespace{Identity: was}).Has(is) == test.same, "%s and %s", was, is)
		})
	}
}

func TestSandboxOfAPod(t *testing.T) {
	type pod = []func(*corev1.Pod)
	for name, test := range map[string]struct {
		pod  pod
		want rwx.Sandbox
	}{
		"nothing known":                 {nil, rwx.Sandbox{}},
		"a kubelet has the pod":         {pod{func(pod *corev1.Pod) { pod.Status.StartTime = ptr.To(at(3)) }}, rwx.Sandbox{PodStarted: at(3).Time}},
		"the first container counts":    {pod{sandboxMade("True", 5), mainContainers(running(9), running(7), waiting())}, rwx.Sandbox{Made: at(5).Time, ContainersStarted: at(7).Time}},
		"no sandbox":                    {pod{sandboxMade("False", 5), mainContainers(again(waiting(), 7))}, rwx.Sandbox{}},
		"old containers do not count":   {pod{sandboxMade("True", 5), mainContainers(again(running(60), 7), ended(6))}, rwx.Sandbox{Made: at(5).Time, ContainersStarted: at(60).Time}},
		"kubelet without the condition": {pod{mainContainers(running(7))}, rwx.Sandbox{ContainersStarted: at(7).Time}},
		"init containers do not count":  {pod{sandboxMade("True", 5), initContainers(running(6)), mainContainers(waiting())}, rwx.Sandbox{Made: at(5).Time}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := workloadPod(test.pod...)
			test.want.Identity = identity(pod, reportedBy(pod))
			got := sandboxOf(pod, reportedBy(pod))
			must.True(t, got == test.want, "got  %+v\nwant %+v", got, test.want)
		})
	}
}

func TestSlimPodsKeepFieldsOfClients(t *testing.T) {
	pod := workloadPod(
		withAddresses("["+eth0+", "+lhnet1+"]", "10.42.0.7"), sandboxMade("True", 5), mainContainers(running(7), again(running(60), 8)),
		func(pod *corev1.Pod) {
			pod.Namespace, pod.Name, pod.Labels = "longhorn-system", "csi-1", map[string]string{"app": "longhorn-csi-plugin", "controller-revision-hash": "4"}
			pod.OwnerReferences = madeBy("apps/v1", "DaemonSet", "longhorn-csi-plugin")
			pod.Annotations[multus.NetworksAnnotation] = "kube-system/one@lhnet1"
			pod.Annotations[rwx.NamespaceAnnotation] = noted
			pod.Status.StartTime = ptr.To(at(3))
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			pod.Spec.Containers = []corev1.Container{{Name: "x", Image: "y"}}
		},
	)
	want := []rwx.Client{{
		Pod: "csi-1", UID: "uid-web-0", Node: "node-1", Network: netOne, Revision: "4", Reported: true,
		Networks: []multus.Attachment{netOne}, NetworksReported: []multus.Attachment{netOne}, Interfaces: reportedBy(pod), Ready: true,
		Sandbox:  rwx.Sandbox{Identity: identity(pod, reportedBy(pod)), PodStarted: at(3).Time, Made: at(5).Time, ContainersStarted: at(7).Time},
		Recorded: rwx.NetworkNamespace{Identity: "0123", Since: at(5).Time},
	}}
	slim, err := caches.SlimPods(&objects.Longhorn)(pod.DeepCopy())
	must.Do(t, err)
	for name, pod := range map[string]*corev1.Pod{"whole": pod, "slim": slim.(*corev1.Pod)} {
		got, err := readerOver(t, pod).ClientsOn(t.Context(), "node-1")
		// The fake client hands times out in the machine's own time zone.
		for i := range got {
			s := &got[i].Sandbox
			s.PodStarted, s.Made, s.ContainersStarted = s.PodStarted.UTC(), s.Made.UTC(), s.ContainersStarted.UTC()
		}
		must.True(t, err == nil && reflect.DeepEqual(got, want), "%s: got  %+v, %v\nwant %+v", name, got, err, want)
	}
	if got := slim.(*corev1.Pod); got.Spec.Containers != nil || got.Status.ContainerStatuses[1].LastTerminationState.Terminated != nil {
		t.Error("the slim pod has unread fields")
	}
}

func TestClientsOfANode(t *testing.T) {
	on := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		return clientPod(name, func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = node, phase })
	}
	unlabelled := objects.With(on("other", "node-1", corev1.PodRunning), func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "other"} })
	r := readerOver(t, on("here", "node-1", corev1.PodRunning), on("elsewhere", "node-2", corev1.PodRunning), on("failed", "node-1", corev1.PodFailed), unlabelled)
	got, err := r.ClientsOn(t.Context(), "node-1")
	must.True(t, err == nil && len(got) == 1 && got[0].Pod == "here", "got %+v, %v", got, err)
	if all, err := r.Clients(t.Context()); err != nil || len(all) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
}

func TestUnreadableRecordedNamespaceIsZero(t *testing.T) {
	for annotation, want := range map[string]rwx.NetworkNamespace{
		"": {}, "yesterday": {}, "2026-01-01T12:00:05Z/0123": {}, noted: {Identity: "0123", Since: at(5).Time},
	} {
		pod := workloadPod(func(pod *corev1.Pod) { pod.Annotations = map[string]string{rwx.NamespaceAnnotation: annotation} })
		got := recordedNamespace(pod)
		must.True(t, got == want, "%q: got %+v", annotation, got)
	}
}
