package cluster

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var (
	begin  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	netOne = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "one"}, Interface: "lhnet1"}
	netTwo = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "two"}, Interface: "lhnet2"}
)

func at(second int) metav1.Time {
	return metav1.NewTime(begin.Add(time.Duration(second) * time.Second))
}

// indexes puts a cache's indexes on a fake client that is yet to be built.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

// indexed is a fake client with the indexes of the controller's cache, and the
// one that the API server has.
func indexed(t *testing.T, objects ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	if err := errors.Join(IndexClaims(t.Context(), indexes{builder}), IndexNodes(t.Context(), indexes{builder})); err != nil {
		t.Fatal(err)
	}
	return builder
}

// bound is a PersistentVolume of a claim in namespace default.
func boundVolume(name, handle, claim string, change ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	pv := persistentVolumeOf(name, handle, corev1.ReadWriteMany, nil)
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: claim}
	pv.Status.Phase = corev1.VolumeBound
	for _, c := range change {
		c(pv)
	}
	return pv
}

func serviceOf(volume, clusterIP string, recorded storage.Attachment) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "longhorn-system", Name: volume, Labels: map[string]string{"longhorn.io/share-manager": volume},
			Annotations: map[string]string{storage.NetworkAnnotation: recorded.String()},
		},
		Spec: corev1.ServiceSpec{ClusterIP: clusterIP},
	}
}

// workloadPod is a pod of StatefulSet web in namespace default.
func workloadPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web-0", UID: "uid-web-0",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "example.io/v1", Kind: "Project", Name: "p", UID: "uid-p"},
				{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "uid-web", Controller: ptr.To(true)},
			},
		},
		Spec:   corev1.PodSpec{NodeName: "node-1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func uses(claims ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		for _, claim := range claims {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "of-" + claim, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		}
	}
}

func sandboxMade(status corev1.ConditionStatus, second int) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodReadyToStartContainers, Status: status, LastTransitionTime: at(second),
		})
	}
}

func running(second int) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at(second)}}}
}

func ended(second int) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at(second)}}}
}

func waiting() corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
}

// again is a container that was restarted: it was started before at that second.
func again(c corev1.ContainerStatus, before int) corev1.ContainerStatus {
	c.RestartCount, c.LastTerminationState = 1, ended(before).State
	return c
}

func mainContainers(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.ContainerStatuses = statuses }
}

func initContainers(statuses ...corev1.ContainerStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.InitContainerStatuses = statuses }
}

func TestWhenAWorkloadsVolumesWereMountedAtTheLatest(t *testing.T) {
	for name, test := range map[string]struct {
		pod                []func(*corev1.Pod)
		mounted            int // 0 is not known
		started, restarted bool
	}{
		"nothing is known yet":            {},
		"its images are yet to be pulled": {pod: []func(*corev1.Pod){mainContainers(waiting()), sandboxMade("False", 3)}},
		"its sandbox is made":             {pod: []func(*corev1.Pod){mainContainers(waiting()), sandboxMade("True", 5)}, mounted: 5, started: true},
		"its containers run": {
			pod: []func(*corev1.Pod){mainContainers(running(9), running(8)), sandboxMade("True", 5)}, mounted: 5, started: true,
		},
		"the condition was written down late: the first container is closer": {
			pod: []func(*corev1.Pod){mainContainers(running(7), running(6)), sandboxMade("True", 9)}, mounted: 6, started: true,
		},
		"an init container runs": {
			pod: []func(*corev1.Pod){initContainers(running(6)), mainContainers(waiting()), sandboxMade("True", 9)}, mounted: 6, started: true,
		},
		"a kubelet without the condition": {pod: []func(*corev1.Pod){mainContainers(running(8), running(7))}, mounted: 7, started: true},
		"a kubelet without the condition, an init container runs": {
			pod: []func(*corev1.Pod){initContainers(running(6)), mainContainers(waiting())}, mounted: 6, started: true,
		},
		"a kubelet without the condition, nothing runs": {pod: []func(*corev1.Pod){initContainers(ended(6)), mainContainers(waiting())}, started: true},
		"a container crashed, the sandbox is the same": {
			pod: []func(*corev1.Pod){mainContainers(again(running(60), 7)), sandboxMade("True", 5)}, mounted: 5, started: true, restarted: true,
		},
		"a container crashes for its dead mount, again and again": {
			pod: []func(*corev1.Pod){mainContainers(again(waiting(), 60)), sandboxMade("True", 5)}, mounted: 5, started: true, restarted: true,
		},
		"an init container was started again": {
			pod: []func(*corev1.Pod){initContainers(again(running(60), 7)), mainContainers(waiting()), sandboxMade("True", 5)}, mounted: 5, started: true, restarted: true,
		},

		// A node that boots mounts the volumes anew: what ran before is no evidence.
		"its node has booted, there is no sandbox yet": {
			pod: []func(*corev1.Pod){initContainers(ended(6)), mainContainers(ended(8)), sandboxMade("False", 100)}, started: true,
		},
		"its node has booted, a new sandbox was made": {
			pod: []func(*corev1.Pod){initContainers(ended(6)), mainContainers(ended(8)), sandboxMade("True", 110)}, mounted: 110, started: true,
		},
		"its node has booted, all run again": {
			pod: []func(*corev1.Pod){initContainers(again(ended(111), 6)), mainContainers(again(running(112), 8)), sandboxMade("True", 110)}, mounted: 110, started: true, restarted: true,
		},
		"its node has booted, a kubelet without the condition": {
			pod: []func(*corev1.Pod){initContainers(again(ended(111), 6)), mainContainers(again(running(112), 8))}, mounted: 112, started: true, restarted: true,
		},
		"its node has booted, a kubelet without the condition, nothing runs yet": {
			pod: []func(*corev1.Pod){initContainers(ended(6)), mainContainers(ended(8))}, started: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := workloadPod(test.pod...)
			got, err := NewReader(storage.Longhorn(), indexed(t).Build(), nil).Workload(t.Context(), pod, netOne)
			want := time.Time{}
			if test.mounted > 0 {
				want = at(test.mounted).Time
			}
			if err != nil || !got.Mounted.Equal(want) || got.Started != test.started || got.Restarted != test.restarted {
				t.Fatalf("got  %v, started %v, restarted %v, %v\nwant %v, started %v, restarted %v", got.Mounted, got.Started, got.Restarted, err, want, test.started, test.restarted)
			}
		})
	}
}

func TestWhoAWorkloadIs(t *testing.T) {
	deleted := at(50)
	base := storage.Workload{
		Namespace: "default", Name: "web-0", UID: "uid-web-0",
		Owner: storage.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "uid-web"},
	}
	with := func(change func(*storage.Workload)) storage.Workload {
		w := base
		change(&w)
		return w
	}
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   storage.Workload
	}{
		"a pod without volumes": {func(*corev1.Pod) {}, base},
		"taken on by a kubelet": {
			func(pod *corev1.Pod) { pod.Status.StartTime = ptr.To(at(3)) },
			with(func(w *storage.Workload) { w.Began = at(3).Time }),
		},
		"on its own": {
			func(pod *corev1.Pod) { pod.OwnerReferences = nil },
			with(func(w *storage.Workload) { w.Owner = storage.Owner{} }),
		},
		"owned, but by no controller": {
			func(pod *corev1.Pod) { pod.OwnerReferences = pod.OwnerReferences[:1] },
			with(func(w *storage.Workload) { w.Owner = storage.Owner{} }),
		},
		"opted out": {
			func(pod *corev1.Pod) { pod.Annotations = map[string]string{storage.OptOutAnnotation: "true"} },
			with(func(w *storage.Workload) { w.OptOut = true }),
		},
		"opted out by another word": {
			func(pod *corev1.Pod) { pod.Annotations = map[string]string{storage.OptOutAnnotation: "yes"} }, base,
		},
		"terminating": {
			func(pod *corev1.Pod) { pod.DeletionTimestamp = &deleted },
			with(func(w *storage.Workload) { w.Terminating = true }),
		},
		"volumes that are no claims": {
			func(pod *corev1.Pod) {
				pod.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			},
			base,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := indexed(t).Build()
			got, err := NewReader(storage.Longhorn(), c, c).Workload(t.Context(), workloadPod(test.change), netOne)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got, err, test.want)
			}
		})
	}
}

func TestWhatAWorkloadMounts(t *testing.T) {
	const driver = "driver.longhorn.io"
	rwx := storage.Mount{Volume: "v", Driver: driver, Shared: true, Network: netTwo}
	headless := serviceOf("v", corev1.ClusterIPNone, netTwo)
	with := func(change func(*storage.Mount)) []storage.Mount {
		m := rwx
		change(&m)
		return []storage.Mount{m}
	}
	phase := func(p corev1.PersistentVolumePhase) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Status.Phase = p }
	}
	rwo := func(pv *corev1.PersistentVolume) {
		pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		pod     func(*corev1.Pod)
		want    []storage.Mount
	}{
		"an RWX volume on its network": {objects: []client.Object{boundVolume("v", "v", "data"), headless}, want: []storage.Mount{rwx}},
		"Longhorn bug: a static PV is found by its handle, not by its name": {
			objects: []client.Object{boundVolume("pv-by-hand", "v", "data"), headless, serviceOf("pv-by-hand", "10.43.0.1", storage.Attachment{})},
			want:    []storage.Mount{rwx},
		},
		"a Released PV names the claim of that name that was there before": {
			objects: []client.Object{boundVolume("a-before", "before", "data", phase(corev1.VolumeReleased)), boundVolume("v", "v", "data"), headless},
			want:    []storage.Mount{rwx},
		},
		"only a Released PV": {
			objects: []client.Object{boundVolume("before", "before", "data", phase(corev1.VolumeReleased))}, want: []storage.Mount{{}},
		},
		"a claim that is not bound":                     {want: []storage.Mount{{}}},
		"a claim of that name in another namespace":     {objects: []client.Object{boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "other" })}, want: []storage.Mount{{}}},
		"a PV that is no CSI volume":                    {objects: []client.Object{boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil })}, want: []storage.Mount{{}}},
		"an ephemeral volume inline, without a claim":   {pod: func(pod *corev1.Pod) { pod.Spec.Volumes = nil }},
		"a PV without access modes is not taken as RWX": {objects: []client.Object{boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = nil }), headless}, want: with(func(m *storage.Mount) { m.Shared = false })},
		"a generic ephemeral volume": {
			objects: []client.Object{boundVolume("v", "v", "web-0-scratch"), headless},
			pod: func(pod *corev1.Pod) {
				pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
			},
			want: []storage.Mount{rwx},
		},
		"RWX beside RWO, in the pod's order": {
			objects: []client.Object{boundVolume("own", "own", "own", rwo), boundVolume("v", "v", "data"), headless},
			pod:     func(pod *corev1.Pod) { pod.Spec.Volumes = nil; uses("own", "data")(pod) },
			want:    []storage.Mount{{Volume: "own", Driver: driver}, rwx},
		},
		"an RWX volume of another driver, of the same handle": {
			objects: []client.Object{boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "efs.csi.aws.com" }), headless, volume("v", "rwo", "attached", "node-1")},
			want:    []storage.Mount{{Volume: "v", Driver: "efs.csi.aws.com", Shared: true}},
		},
		"migratable, says the PV": {
			objects: []client.Object{boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) {
				pv.Spec.CSI.VolumeAttributes = map[string]string{"migratable": "true"}
			}), headless},
			want: with(func(m *storage.Mount) { m.Shared, m.Migratable = false, true }),
		},
		"Longhorn's volume knows better than a PV by hand: it is RWO": {
			objects: []client.Object{boundVolume("v", "v", "data"), headless, volume("v", "rwo", "attached", "node-1")},
			want:    with(func(m *storage.Mount) { m.Shared = false }),
		},
		"Longhorn's volume knows better: it is RWX": {
			objects: []client.Object{boundVolume("v", "v", "data", rwo), headless, volume("v", "rwx", "attached", "node-1")}, want: []storage.Mount{rwx},
		},
		"Longhorn's volume knows better: it is migratable": {
			objects: []client.Object{boundVolume("v", "v", "data"), headless, volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) { v.Spec.Migratable = true })},
			want:    with(func(m *storage.Mount) { m.Shared, m.Migratable = false, true }),
		},
		"Longhorn's volume knows better: it is not migratable": {
			objects: []client.Object{
				boundVolume("v", "v", "data", func(pv *corev1.PersistentVolume) {
					pv.Spec.CSI.VolumeAttributes = map[string]string{"migratable": "true"}
				}),
				headless, volume("v", "rwx", "attached", "node-1"),
			},
			want: []storage.Mount{rwx},
		},
		"a remount is requested": {
			objects: []client.Object{boundVolume("v", "v", "data"), headless, volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) { v.Status.RemountRequestedAt = "2026-01-01T12:00:20Z" })},
			want:    with(func(m *storage.Mount) { m.RemountRequested = at(20).Time }),
		},
		"a request that can't be read is none": {
			objects: []client.Object{boundVolume("v", "v", "data"), headless, volume("v", "rwx", "attached", "node-1", func(v *longhorn.Volume) { v.Status.RemountRequestedAt = "soon" })},
			want:    []storage.Mount{rwx},
		},
		"no Service": {objects: []client.Object{boundVolume("v", "v", "data")}, want: with(func(m *storage.Mount) { m.Network = storage.Attachment{} })},
		"a Service with a cluster IP": {
			objects: []client.Object{boundVolume("v", "v", "data"), serviceOf("v", "10.43.0.1", netTwo)},
			want:    with(func(m *storage.Mount) { m.Network = storage.Attachment{} }),
		},
		"a headless Service without a record follows the clients": {
			objects: []client.Object{boundVolume("v", "v", "data"), serviceOf("v", corev1.ClusterIPNone, storage.Attachment{})},
			want:    with(func(m *storage.Mount) { m.Network = netOne }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := workloadPod(uses("data"))
			if test.pod != nil {
				test.pod(pod)
			}
			c := indexed(t, test.objects...).Build()
			got, err := NewReader(storage.Longhorn(), c, c).Workload(t.Context(), pod, netOne)
			if err != nil || !reflect.DeepEqual(got.Mounts, test.want) {
				t.Fatalf("got  %+v, %v\nwant %+v", got.Mounts, err, test.want)
			}
		})
	}
}

func TestSlimPersistentVolumesAreFoundByTheirClaim(t *testing.T) {
	slim, err := caches.SlimPersistentVolume(boundVolume("pv-by-hand", "v", "data"))
	if err != nil {
		t.Fatal(err)
	}
	c := indexed(t, slim.(client.Object), serviceOf("v", corev1.ClusterIPNone, netTwo)).Build()
	got, err := NewReader(storage.Longhorn(), c, c).Workload(t.Context(), workloadPod(uses("data")), netOne)
	want := []storage.Mount{{Volume: "v", Driver: "driver.longhorn.io", Shared: true, Network: netTwo}}
	if err != nil || !reflect.DeepEqual(got.Mounts, want) {
		t.Fatalf("got  %+v, %v\nwant %+v", got.Mounts, err, want)
	}
}

// What can't be read is no reason to take a pod for one that is none of ours.
func TestAWorkloadWhoseVolumesCantBeReadIsAnError(t *testing.T) {
	outage := errors.New("no route to host")
	for name, kind := range map[string]client.Object{"the volume": &longhorn.Volume{}, "the Service": &corev1.Service{}} {
		t.Run(name, func(t *testing.T) {
			c := indexed(t, boundVolume("v", "v", "data")).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if reflect.TypeOf(o) == reflect.TypeOf(kind) {
						return outage
					}
					return c.Get(ctx, key, o, opts...)
				},
			}).Build()
			if got, err := NewReader(storage.Longhorn(), c, c).Workload(t.Context(), workloadPod(uses("data")), netOne); !errors.Is(err, outage) {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

func TestPodsOnAreThoseThatRunOrWill(t *testing.T) {
	named := func(name, node string, phase corev1.PodPhase) *corev1.Pod {
		return workloadPod(func(pod *corev1.Pod) { pod.Name, pod.Spec.NodeName, pod.Status.Phase = name, node, phase })
	}
	c := indexed(t,
		named("pending", "node-1", corev1.PodPending), named("running", "node-1", corev1.PodRunning),
		named("failed", "node-1", corev1.PodFailed), named("succeeded", "node-1", corev1.PodSucceeded),
		named("elsewhere", "node-2", corev1.PodRunning), named("nowhere", "", corev1.PodPending),
	).Build()
	pods, err := PodsOn(t.Context(), c, "node-1")
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	slices.Sort(names)
	if want := []string{"pending", "running"}; err != nil || !slices.Equal(names, want) {
		t.Fatalf("got %q, %v; want %q", names, err, want)
	}
}
