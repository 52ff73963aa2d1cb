package reads

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// madeBy is the owner of a pod that a controller made.
func madeBy(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID("uid-" + name), Controller: ptr.To(true)}}
}

// owners of look-alike pods, by what is wrong with them.
func lookAlikes(apiVersion, kind, name string) map[string][]metav1.OwnerReference {
	noController := madeBy(apiVersion, kind, name)
	noController[0].Controller = nil
	return map[string][]metav1.OwnerReference{
		"no owner": nil, "an owner that is no controller": noController,
		"another kind": madeBy(apiVersion, "ReplicaSet", name), "another name": madeBy(apiVersion, kind, name+"-2"),
		"another group": madeBy("example.io/v1", kind, name),
	}
}

// clientPod is a pod of Longhorn's CSI plugin.
func clientPod(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := objects.Pod(objects.Longhorn.Namespace, name, "node-1")
	pod.Labels, pod.OwnerReferences = objects.Longhorn.ClientLabels, madeBy("apps/v1", "DaemonSet", objects.Longhorn.ClientDaemonSet)
	return objects.With(pod, changes...)
}

func serverPod(name string) *corev1.Pod {
	return objects.ServerPod("v", func(pod *corev1.Pod) { pod.Name, pod.UID = name, types.UID(name) })
}

func TestLookAlikePodsAreIgnored(t *testing.T) {
	checkReal := func(t *testing.T, names []string, errs ...error) {
		t.Helper()
		err := errors.Join(errs...)
		must.True(t, err == nil && slices.Equal(names, []string{"real", "real"}), "got %v, %v", names, err)
	}
	for what, owners := range lookAlikes("apps/v1", "DaemonSet", objects.Longhorn.ClientDaemonSet) {
		t.Run("client, "+what, func(t *testing.T) {
			r := readerOver(t, clientPod("real"), clientPod("look-alike", func(pod *corev1.Pod) { pod.OwnerReferences = owners }))
			facts, _, err := r.Rollout(t.Context(), time.Time{})
			here, errHere := r.ClientsOn(t.Context(), "node-1")
			checkReal(t, podNames(append(facts.Clients, here...), func(c rwx.Client) string { return c.Pod }), err, errHere)
		})
	}
	for what, owners := range lookAlikes("longhorn.io/v1beta2", "ShareManager", "v") {
		t.Run("server, "+what, func(t *testing.T) {
			r := readerOver(t, serverPod("real"), objects.With(serverPod("look-alike"), func(pod *corev1.Pod) { pod.OwnerReferences = owners }))
			facts, _, err := r.Rollout(t.Context(), time.Time{})
			its, errIts := r.ServersOf(t.Context(), "v")
			checkReal(t, podNames(append(facts.Servers, its...), func(s rwx.Server) string { return s.Pod }), err, errIts)
		})
	}
}

func podNames[T any](list []T, name func(T) string) []string {
	var names []string
	for _, item := range list {
		names = append(names, name(item))
	}
	return names
}

// After an upgrade from Longhorn 1.10 to 1.11 a pod may ask for both interfaces.
func TestClientReachesEveryNetworkThatMultusReports(t *testing.T) {
	const first, second = `{"name":"kube-system/one","interface":"lhnet1","ips":["10.0.0.1"]}`, `{"name":"kube-system/two","interface":"lhnet2","ips":["10.1.0.1"]}`
	for name, test := range map[string]struct {
		asked, reported string
		one, two        bool
	}{
		"both":                     {"kube-system/two@lhnet2,kube-system/one@lhnet1", first + "," + second, true, true},
		"only the first":           {"kube-system/one@lhnet1,kube-system/two@lhnet2", first, true, false},
		"only the second":          {"kube-system/one@lhnet1,kube-system/two@lhnet2", second, false, true},
		"by the other interface":   {"kube-system/one@lhnet2", `{"name":"kube-system/one","interface":"lhnet2","ips":["10.0.0.1"]}`, true, false},
		"reported but not asked":   {"kube-system/two@lhnet2", first, false, false},
		"reported without address": {"kube-system/one@lhnet1", `{"name":"kube-system/one","interface":"lhnet1"}`, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := clientPod("csi", func(pod *corev1.Pod) {
				pod.Annotations = map[string]string{multus.NetworksAnnotation: test.asked, multus.NetworkStatusAnnotation: "[" + test.reported + "]"}
			})
			got, err := readerOver(t, pod).Clients(t.Context())
			must.True(t, err == nil && len(got) == 1, "got %+v, %v", got, err)
			one, two := got[0].Reaches(netOne), got[0].Reaches(netTwo)
			must.True(t, one == test.one && two == test.two, "reaches one: %v, two: %v", one, two)
		})
	}
}
