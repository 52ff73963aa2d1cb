package multus

import (
	"net/netip"
	"testing"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func runningPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", Namespace: "default", UID: "uid",
			Annotations: map[string]string{netv1.NetworkAttachmentAnnot: "storage"},
		},
		Spec: corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.244.1.1",
			PodIPs: []corev1.PodIP{{IP: "10.244.1.1"}, {IP: "fd00:10:244:1::1"}},
		},
	}
}

func TestStatusIsWrittenLikeMultus(t *testing.T) {
	pod := runningPod()
	got, err := encodeStatus(pod, []attached{{
		NetworkSelectionElement: netv1.NetworkSelectionElement{Namespace: "kube-system", Name: "storage", InterfaceRequest: "lhnet1", MacRequest: "02:00:00:00:00:01"},
		addresses:               []netip.Addr{netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("fd00:1::2")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := `[{
    "name": "cbr0",
    "interface": "eth0",
    "ips": [
        "10.244.1.1",
        "fd00:10:244:1::1"
    ],
    "mac": "` + macOf(pod, "eth0") + `",
    "default": true,
    "dns": {}
},{
    "name": "kube-system/storage",
    "interface": "lhnet1",
    "ips": [
        "10.1.0.2",
        "fd00:1::2"
    ],
    "mac": "02:00:00:00:00:01",
    "dns": {}
}]`
	if got != want {
		t.Errorf("status is\n%s\nwant\n%s", got, want)
	}
}

func TestOnlyPodsThatMultusWouldAttachAreWaiting(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"running and asking":  {func(*corev1.Pod) {}, true},
		"asks for nothing":    {func(p *corev1.Pod) { p.Annotations = nil }, false},
		"has its status":      {func(p *corev1.Pod) { p.Annotations[netv1.NetworkStatusAnnot] = `[{"name":"cbr0"}]` }, false},
		"detached":            {func(p *corev1.Pod) { p.Annotations[netv1.NetworkStatusAnnot] = "[]" }, true},
		"on the host network": {func(p *corev1.Pod) { p.Spec.HostNetwork = true }, false},
		"not scheduled":       {func(p *corev1.Pod) { p.Spec.NodeName = "" }, false},
		"pending":             {func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, false},
		"without a sandbox": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReadyToStartContainers, Status: corev1.ConditionFalse}}
		}, false},
		"without an address": {func(p *corev1.Pod) { p.Status.PodIP = "" }, false},
		"being deleted":      {func(p *corev1.Pod) { p.DeletionTimestamp = &now }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := runningPod()
			c.change(pod)
			if got := waiting(pod); got != c.want {
				t.Errorf("waiting is %v, want %v", got, c.want)
			}
		})
	}
}
