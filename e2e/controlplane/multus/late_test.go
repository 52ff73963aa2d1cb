package multus

import (
	"testing"
	"time"

	netv1 "github.com/k8snetworkplumbingwg/network-attachment-definition-client/pkg/apis/k8s.cni.cncf.io/v1"
)

func TestLongestDelayCounts(t *testing.T) {
	network := func(text string) *netv1.NetworkAttachmentDefinition {
		n := &netv1.NetworkAttachmentDefinition{}
		n.Annotations = map[string]string{DelayAnnotation: text}
		return n
	}
	for name, c := range map[string]struct {
		pod      string
		networks []*netv1.NetworkAttachmentDefinition
		want     time.Duration
	}{
		"none":             {"", []*netv1.NetworkAttachmentDefinition{{}}, 0},
		"the pod's":        {"3s", []*netv1.NetworkAttachmentDefinition{network("1s")}, 3 * time.Second},
		"a network's":      {"", []*netv1.NetworkAttachmentDefinition{network("1s"), network("200ms")}, time.Second},
		"without networks": {"5ms", nil, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			pod := runningPod()
			pod.Annotations[DelayAnnotation] = c.pod
			if got, err := delay(pod, c.networks); err != nil || got != c.want {
				t.Errorf("the delay is %s, %v; want %s", got, err, c.want)
			}
		})
	}
	if got, err := delay(runningPod(), []*netv1.NetworkAttachmentDefinition{network("soon")}); err == nil {
		t.Errorf("a delay that can't be read is %s", got)
	}
}

func TestDelayBeginsWithFirstRequest(t *testing.T) {
	waits := newWaits()
	start := time.Now()
	for _, c := range []struct {
		delay, after, want time.Duration
	}{
		{0, 0, 0},
		{3 * time.Second, 0, 3 * time.Second},
		{3 * time.Second, time.Second, 2 * time.Second},
		{time.Second, time.Second, 0}, // shortened meanwhile
	} {
		if got := waits.left("pod", c.delay, start.Add(c.after)); got != c.want {
			t.Errorf("after %s, %s of %s is left, want %s", c.after, got, c.delay, c.want)
		}
	}
	waits.over("pod")
	if got := waits.left("pod", time.Second, start.Add(time.Minute)); got != time.Second {
		t.Errorf("its next sandbox waits for %s, want a second", got)
	}
}
