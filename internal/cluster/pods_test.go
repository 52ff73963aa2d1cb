package cluster

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/storage"
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

func TestLookAlikePodsAreNoClients(t *testing.T) {
	profile := storage.Longhorn()
	pod := func(name string, owners []metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: name, Labels: profile.ClientLabels, OwnerReferences: owners},
			Spec:       corev1.PodSpec{NodeName: "node-1"},
		}
	}
	real := pod("real", madeBy("apps/v1", "DaemonSet", profile.ClientDaemonSet))
	for what, owners := range lookAlikes("apps/v1", "DaemonSet", profile.ClientDaemonSet) {
		t.Run(what, func(t *testing.T) {
			r := readerOver(t, real.DeepCopy(), pod("look-alike", owners))
			for _, read := range []func() ([]storage.Client, error){
				func() ([]storage.Client, error) { return r.Clients(t.Context()) },
				func() ([]storage.Client, error) { return r.ClientsOn(t.Context(), "node-1") },
			} {
				if got, err := read(); err != nil || len(got) != 1 || got[0].Pod != "real" {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
}

func TestLookAlikePodsAreNoServers(t *testing.T) {
	profile := storage.Longhorn()
	pod := func(name string, owners []metav1.OwnerReference) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: profile.Namespace, Name: name, Labels: maps.Clone(profile.ServerLabels), OwnerReferences: owners}}
		p.Labels[profile.VolumeLabel] = "v"
		return p
	}
	real := pod("real", madeBy("longhorn.io/v1beta2", "ShareManager", "v"))
	for what, owners := range lookAlikes("longhorn.io/v1beta2", "ShareManager", "v") {
		t.Run(what, func(t *testing.T) {
			r := readerOver(t, real.DeepCopy(), pod("look-alike", owners))
			for _, read := range []func() ([]storage.Server, error){
				func() ([]storage.Server, error) { return r.Servers(t.Context()) },
				func() ([]storage.Server, error) { return r.ServersOf(t.Context(), "v") },
			} {
				if got, err := read(); err != nil || len(got) != 1 || got[0].Pod != "real" {
					t.Errorf("got %+v, %v", got, err)
				}
			}
		})
	}
}

// After an upgrade from Longhorn 1.10 to 1.11 a pod may ask for both interfaces.
func TestClientReachesEveryNetworkThatMultusReports(t *testing.T) {
	profile := storage.Longhorn()
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
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: profile.Namespace, Name: "csi", Labels: profile.ClientLabels, OwnerReferences: madeBy("apps/v1", "DaemonSet", profile.ClientDaemonSet),
				Annotations: map[string]string{storage.NetworksAnnotation: test.asked, storage.NetworkStatusAnnotation: "[" + test.reported + "]"},
			}}
			got, err := readerOver(t, pod).Clients(t.Context())
			if err != nil || len(got) != 1 {
				t.Fatalf("got %+v, %v", got, err)
			}
			one, two := netOne, storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "two"}, Interface: "lhnet2"}
			if got[0].Reaches(one) != test.one || got[0].Reaches(two) != test.two {
				t.Errorf("reaches one: %v, two: %v", got[0].Reaches(one), got[0].Reaches(two))
			}
		})
	}
}

func TestPodIsReadOncePerVersion(t *testing.T) {
	r, reads := newReadings[int](), 0
	read := func(*corev1.Pod) int { reads++; return reads }
	pod := func(uid, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), ResourceVersion: version}}
	}
	var got []int
	for _, p := range []*corev1.Pod{pod("a", "1"), pod("a", "1"), pod("b", "1"), pod("a", "2"), pod("b", "1"), pod("", "1"), pod("", "1"), pod("c", ""), pod("c", "")} {
		got = append(got, r.of(p, read))
	}
	if want := []int{1, 1, 2, 3, 2, 4, 5, 6, 7}; !slices.Equal(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	r.keepOnly(1, func(int) string { return "b" })
	if len(r.byUID) != 1 || r.of(pod("b", "1"), read) != 2 {
		t.Fatalf("kept %v", r.byUID)
	}
}
