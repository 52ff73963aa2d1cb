package fencingreads

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestArgumentsThatEnableCephCSIFencing(t *testing.T) {
	for _, test := range []struct {
		command, args []string
		fences        bool
	}{
		{nil, []string{"--type=rbd", "--enable-fencing=true"}, true},
		{nil, []string{"-enable-fencing"}, true},
		{[]string{"cephcsi", "--enable-fencing=1"}, nil, true},
		{nil, []string{"--enable-fencing=false"}, false},
		{nil, []string{"--enable-fencing=maybe"}, false}, // ceph-csi does not start
		{nil, []string{"--enable-fencing-of-others", "--type=rbd"}, false},
		{nil, nil, false},
	} {
		pod := objects.ClientPod("csi-rbdplugin", "node-1", func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "driver-registrar"}, {Name: "csi-rbdplugin", Command: test.command, Args: test.args}}
		})
		slim, err := caches.SlimPods(nil)(pod.DeepCopy())
		must.Do(t, err)
		if caches.FencesItself(pod) != test.fences || caches.FencesItself(slim.(*corev1.Pod)) != test.fences {
			t.Errorf("%q %q: got %t, %t of the cache's copy", test.command, test.args, caches.FencesItself(pod), caches.FencesItself(slim.(*corev1.Pod)))
		}
	}
}
