package cluster

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/storage"
)

const (
	eth0   = `{"name": "cbr0", "interface": "eth0", "ips": ["10.42.0.7"], "mac": "02:00:00:00:00:01", "default": true}`
	lhnet1 = `{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "02:00:00:00:00:02"}`
)

func withAddresses(status string, ips ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Annotations = map[string]string{storage.NetworkStatusAnnotation: status}
		for _, ip := range ips {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
	}
}

func TestANetworkNamespaceIsKnownByItsAddresses(t *testing.T) {
	base := withAddresses("["+eth0+", "+lhnet1+"]", "10.42.0.7", "fd42::7")
	for name, test := range map[string]struct {
		pod  func(*corev1.Pod)
		same bool
	}{
		"the same": {base, true},
		"interfaces in another order": {
			withAddresses("["+lhnet1+","+eth0+"]", "10.42.0.7", "fd42::7"), true,
		},
		"the pod's own addresses in another order": {withAddresses("["+eth0+", "+lhnet1+"]", "fd42::7", "10.42.0.7"), true},
		"what Multus says besides": {
			withAddresses("["+eth0+", "+`{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "02:00:00:00:00:02", "dns": {}, "mtu": 1500}`+"]", "10.42.0.7", "fd42::7"), true,
		},
		"whatever else changes of the pod": {
			func(pod *corev1.Pod) {
				base(pod)
				pod.Labels, pod.ResourceVersion, pod.Status.Phase = map[string]string{"a": "b"}, "7", corev1.PodPending
				pod.Annotations["c"] = "d"
				pod.Annotations[storage.NamespaceAnnotation] = "2026-01-01T12:00:00Z/x"
			}, true,
		},
		"a fixed address, another MAC": {
			withAddresses("["+eth0+", "+`{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.3"], "mac": "02:00:00:00:00:03"}`+"]", "10.42.0.7", "fd42::7"), false,
		},
		"another address of the pod": {withAddresses("["+eth0+", "+lhnet1+"]", "10.42.0.8", "fd42::7"), false},
		"another address on the network": {
			withAddresses("["+eth0+", "+`{"name": "kube-system/one", "interface": "lhnet1", "ips": ["192.168.0.4"], "mac": "02:00:00:00:00:02"}`+"]", "10.42.0.7", "fd42::7"), false,
		},
		"one interface more":         {withAddresses("["+eth0+", "+lhnet1+`, {"name": "kube-system/x", "interface": "net1"}]`, "10.42.0.7", "fd42::7"), false},
		"one interface less":         {withAddresses("["+eth0+"]", "10.42.0.7", "fd42::7"), false},
		"Multus has reported none":   {withAddresses("", "10.42.0.7", "fd42::7"), false},
		"what Multus says is broken": {withAddresses("[{", "10.42.0.7", "fd42::7"), false},
	} {
		t.Run(name, func(t *testing.T) {
			one, other := workloadPod(base), workloadPod(test.pod)
			if got := identity(one, reportedBy(one)) == identity(other, reportedBy(other)); got != test.same {
				t.Fatalf("%s and %s", identity(one, reportedBy(one)), identity(other, reportedBy(other)))
			}
		})
	}
}

func TestWhatAPodsStatusTellsOfItsSandbox(t *testing.T) {
	for name, test := range map[string]struct {
		pod  []func(*corev1.Pod)
		want storage.Sandbox
	}{
		"nothing yet": {},
		"taken on":    {[]func(*corev1.Pod){func(pod *corev1.Pod) { pod.Status.StartTime = ptr.To(at(3)) }}, storage.Sandbox{PodStarted: at(3).Time}},
		"made, and the first of two containers started": {
			[]func(*corev1.Pod){sandboxMade("True", 5), mainContainers(running(9), running(7), waiting())},
			storage.Sandbox{Made: at(5).Time, ContainersStarted: at(7).Time},
		},
		"there is none now":               {[]func(*corev1.Pod){sandboxMade("False", 5), mainContainers(again(waiting(), 7))}, storage.Sandbox{}},
		"what ran before says nothing":    {[]func(*corev1.Pod){sandboxMade("True", 5), mainContainers(again(running(60), 7), ended(6))}, storage.Sandbox{Made: at(5).Time, ContainersStarted: at(60).Time}},
		"a kubelet without the condition": {[]func(*corev1.Pod){mainContainers(running(7))}, storage.Sandbox{ContainersStarted: at(7).Time}},
		"init containers are not those that mount": {
			[]func(*corev1.Pod){sandboxMade("True", 5), initContainers(running(6)), mainContainers(waiting())}, storage.Sandbox{Made: at(5).Time},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := workloadPod(test.pod...)
			test.want.Identity = identity(pod, reportedBy(pod))
			if got := sandboxOf(pod, reportedBy(pod)); got != test.want {
				t.Fatalf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// slimPods is what the cache keeps of a pod; what is read of clients must be in it.
func TestSlimPodsKeepWhatIsReadOfClients(t *testing.T) {
	pod := workloadPod(
		withAddresses("["+eth0+", "+lhnet1+"]", "10.42.0.7"), sandboxMade("True", 5), mainContainers(running(7), again(running(60), 8)),
		func(pod *corev1.Pod) {
			pod.Namespace, pod.Name, pod.Labels = "longhorn-system", "csi-1", map[string]string{"app": "longhorn-csi-plugin", "pod-template-generation": "4"}
			pod.OwnerReferences = madeBy("apps/v1", "DaemonSet", "longhorn-csi-plugin")
			pod.Annotations[storage.NetworksAnnotation] = "kube-system/one@lhnet1"
			pod.Annotations[storage.NamespaceAnnotation] = "2026-01-01T12:00:05Z/0123"
			pod.Status.StartTime = ptr.To(at(3))
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
			pod.Spec.Containers = []corev1.Container{{Name: "x", Image: "y"}}
		},
	)
	want := []storage.Client{{
		Pod: "csi-1", UID: "uid-web-0", Node: "node-1", Network: netOne, Revision: "4", Reported: true,
		Networks: []storage.Attachment{netOne}, NetworksReported: []storage.Attachment{netOne}, Ready: true,
		Sandbox:  storage.Sandbox{Identity: identity(pod, reportedBy(pod)), PodStarted: at(3).Time, Made: at(5).Time, ContainersStarted: at(7).Time},
		Recorded: storage.NetworkNamespace{Identity: "0123", Since: at(5).Time},
	}}
	slim, err := caches.SlimPods(storage.Profiles())(pod.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range map[string]*corev1.Pod{"whole": pod, "slim": slim.(*corev1.Pod)} {
		got, err := readerOver(t, pod).ClientsOn(t.Context(), "node-1")
		// The fake client hands times out in the machine's own time zone.
		for i := range got {
			s := &got[i].Sandbox
			s.PodStarted, s.Made, s.ContainersStarted = s.PodStarted.UTC(), s.Made.UTC(), s.ContainersStarted.UTC()
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v, %v\nwant %+v", name, got, err, want)
		}
	}
	if got := slim.(*corev1.Pod); got.Spec.Containers != nil || got.Status.ContainerStatuses[1].LastTerminationState.Terminated != nil {
		t.Error("what nobody reads is kept")
	}
}

func TestClientsAreThoseOfTheNode(t *testing.T) {
	on := func(name, node string, phase corev1.PodPhase, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: name, Labels: labels, OwnerReferences: madeBy("apps/v1", "DaemonSet", "longhorn-csi-plugin")},
			Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
		}
	}
	csi := map[string]string{"app": "longhorn-csi-plugin"}
	r := readerOver(t,
		on("here", "node-1", corev1.PodRunning, csi), on("there", "node-2", corev1.PodRunning, csi),
		on("failed", "node-1", corev1.PodFailed, csi), on("other", "node-1", corev1.PodRunning, map[string]string{"app": "other"}),
	)
	got, err := r.ClientsOn(t.Context(), "node-1")
	if err != nil || len(got) != 1 || got[0].Pod != "here" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if all, err := r.Clients(t.Context()); err != nil || len(all) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
}

func TestARecordedNamespaceThatCantBeReadIsNone(t *testing.T) {
	for annotation, want := range map[string]storage.NetworkNamespace{
		"":                            {},
		"yesterday":                   {},
		"2026-01-01T12:00:05Z/0123":   {Identity: "0123", Since: at(5).Time},
		"2026-01-01T12:00:05Z/":       {},
		"2026-01-01T12:00:05Z / 0123": {},
	} {
		pod := workloadPod(func(pod *corev1.Pod) { pod.Annotations = map[string]string{storage.NamespaceAnnotation: annotation} })
		if got := recordedNamespace(pod); got != want {
			t.Errorf("%q: got %+v", annotation, got)
		}
	}
}
