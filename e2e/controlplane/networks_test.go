package controlplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const dualStackNetwork = `{
  "cniVersion": "1.0.0", "type": "macvlan", "master": "stor0",
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.30.0.0/24"}], [{"subnet": "fd00:30::/64"}]]}
}`

// soon is what "within a few hundred milliseconds" is allowed to be on a machine
// that is busy with something else.
const soon = 15 * time.Second

func networks(t *testing.T, r *running) {
	r.createPod(t, "early", "storage@lhnet1", false)
	eventually(t, 30*time.Second, "complaining about the missing network", func() error {
		events, err := r.typed.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=early,reason=FailedCreatePodSandBox"})
		if err == nil && len(events.Items) == 0 {
			err = errors.New("no event")
		}
		return err
	})
	if _, err := r.status(t, "early"); err == nil {
		t.Error("there is a status for a network that doesn't exist")
	}

	r.create(t, "k8s.cni.cncf.io", "v1", "network-attachment-definitions", "NetworkAttachmentDefinition", "storage",
		map[string]any{"spec": map[string]any{"config": dualStackNetwork}})
	eventually(t, soon, "attached once the network is there", func() error {
		_, err := r.status(t, "early")
		return err
	})

	r.createPod(t, "json", `[{"name":"storage","namespace":"default","interface":"lhnet1"}]`, false)
	r.createPod(t, "host", "storage", true)
	var statuses []netv1.NetworkStatus
	eventually(t, 30*time.Second, "attached", func() (err error) {
		statuses, err = r.status(t, "json")
		return err
	})
	if len(statuses) != 2 || !statuses[0].Default || statuses[0].Interface != "eth0" {
		t.Fatalf("the status is %+v, want the default network and one more", statuses)
	}
	if network := statuses[1]; network.Name != "default/storage" || network.Interface != "lhnet1" {
		t.Errorf("the network is %s on %s", network.Name, network.Interface)
	}
	for i, within := range []string{"10.30.0.0/24", "fd00:30::/64"} {
		ips := statuses[1].IPs
		if len(ips) != 2 || !netip.MustParsePrefix(within).Contains(netip.MustParseAddr(ips[i])) {
			t.Errorf("addresses are %v, want one in %s", ips, within)
		}
	}

	eventually(t, 30*time.Second, "running on the host network", func() error {
		pod, err := r.typed.CoreV1().Pods(namespace).Get(t.Context(), "host", metav1.GetOptions{})
		if err == nil && pod.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("it is %s", pod.Status.Phase)
		}
		return err
	})
	time.Sleep(500 * time.Millisecond) // nothing announces that no more follows
	if statuses, err := r.status(t, "host"); err == nil {
		t.Errorf("a pod on the host network has status %+v", statuses)
	}
}

func (r *running) createPod(t *testing.T, name, networks string, hostNetwork bool) {
	t.Helper()
	_, err := r.typed.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{netv1.NetworkAttachmentAnnot: networks}},
		Spec:       corev1.PodSpec{HostNetwork: hostNetwork, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("creating pod %s: %v", name, err)
	}
}

func (r *running) status(t *testing.T, pod string) ([]netv1.NetworkStatus, error) {
	t.Helper()
	object, err := r.typed.CoreV1().Pods(namespace).Get(t.Context(), pod, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	annotation, found := object.Annotations[netv1.NetworkStatusAnnot]
	if !found {
		return nil, errors.New("there is no network-status")
	}
	var statuses []netv1.NetworkStatus
	return statuses, json.Unmarshal([]byte(annotation), &statuses)
}
