package reads

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

var (
	begin  = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	netOne = objects.Network("one", "lhnet1")
	netTwo = objects.Network("two", "lhnet2")
)

func at(second int) metav1.Time {
	return metav1.NewTime(begin.Add(time.Duration(second) * time.Second))
}

// indexes adds the indexes of a cache to the builder of a fake client.
type indexes struct{ *fake.ClientBuilder }

func (i indexes) IndexField(_ context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i.WithIndex(o, field, extract)
	return nil
}

// indexed is a fake client with the indexes of the controller's cache, and the
// one that the API server has.
func indexed(t *testing.T, stored ...client.Object) *fake.ClientBuilder {
	t.Helper()
	scheme, err := NewScheme()
	must.Do(t, err)
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored...)
	must.Do(t, errors.Join(IndexClaims(t.Context(), indexes{builder}), IndexNodes(t.Context(), indexes{builder})))
	return builder
}

// boundVolume is an RWX volume of Longhorn, bound to a claim in namespace default.
func boundVolume(name, handle, claim string, changes ...func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	return objects.Volume(name, "driver.longhorn.io", handle, claim, append([]func(*corev1.PersistentVolume){objects.Shared}, changes...)...)
}

func serviceOf(volume, clusterIP string, recorded multus.Attachment) *corev1.Service {
	return objects.Headless(volume, recorded, func(s *corev1.Service) { s.Spec.ClusterIP = clusterIP })
}

// workloadPod is a pod of StatefulSet web in namespace default.
func workloadPod(changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := objects.Pod("default", "web-0", "node-1")
	pod.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "example.io/v1", Kind: "Project", Name: "p", UID: "uid-p"}}, madeBy("apps/v1", "StatefulSet", "web")...)
	pod.Status.Phase = corev1.PodRunning
	return objects.With(pod, changes...)
}

func uses(claims ...string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.Volumes = objects.Pod("", "", "", claims...).Spec.Volumes }
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

func TestMountTimeOfAWorkload(t *testing.T) {
	type pod = []func(*corev1.Pod)
	for name, test := range map[string]struct {
		pod                pod
		mounted            int // 0 is not known
		started, restarted bool
	}{
		"nothing known":               {nil, 0, false, false},
		"images not pulled":           {pod{mainContainers(waiting()), sandboxMade("False", 3)}, 0, false, false},
		"sandbox made":                {pod{mainContainers(waiting()), sandboxMade("True", 5)}, 5, true, false},
		"containers run":              {pod{mainContainers(running(9), running(8)), sandboxMade("True", 5)}, 5, true, false},
		"condition written late":      {pod{mainContainers(running(7), running(6)), sandboxMade("True", 9)}, 6, true, false},
		"init container runs":         {pod{initContainers(running(6)), mainContainers(waiting()), sandboxMade("True", 9)}, 6, true, false},
		"container crashed":           {pod{mainContainers(again(running(60), 7)), sandboxMade("True", 5)}, 5, true, true},
		"container crashes in a loop": {pod{mainContainers(again(waiting(), 60)), sandboxMade("True", 5)}, 5, true, true},
		"init container restarted":    {pod{initContainers(again(running(60), 7)), mainContainers(waiting()), sandboxMade("True", 5)}, 5, true, true},

		"no condition":                      {pod{mainContainers(running(8), running(7))}, 7, true, false},
		"no condition, init container runs": {pod{initContainers(running(6)), mainContainers(waiting())}, 6, true, false},
		"no condition, nothing runs":        {pod{initContainers(ended(6)), mainContainers(waiting())}, 0, true, false},

		// A node that boots mounts the volumes again: containers from before the boot prove nothing.
		"node booted, no sandbox":                 {pod{initContainers(ended(6)), mainContainers(ended(8)), sandboxMade("False", 100)}, 0, true, false},
		"node booted, new sandbox":                {pod{initContainers(ended(6)), mainContainers(ended(8)), sandboxMade("True", 110)}, 110, true, false},
		"node booted, all run":                    {pod{initContainers(again(ended(111), 6)), mainContainers(again(running(112), 8)), sandboxMade("True", 110)}, 110, true, true},
		"node booted, no condition":               {pod{initContainers(again(ended(111), 6)), mainContainers(again(running(112), 8))}, 112, true, true},
		"node booted, no condition, nothing runs": {pod{initContainers(ended(6)), mainContainers(ended(8))}, 0, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readerOver(t).Workload(t.Context(), workloadPod(test.pod...), netOne)
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

func TestStartsOfContainersIncludeEarlierRuns(t *testing.T) {
	w, err := readerOver(t).Workload(t.Context(), workloadPod(initContainers(ended(6)), mainContainers(again(running(60), 8), waiting(), again(waiting(), 9))), netOne)
	must.Do(t, err)
	must.True(t, slices.Equal(w.Starts, []time.Time{at(6).Time, at(60).Time, at(8).Time, at(9).Time}), "got %v", w.Starts)
	often := again(running(60), 50)
	often.RestartCount = 2
	w, err = readerOver(t).Workload(t.Context(), workloadPod(mainContainers(often), func(pod *corev1.Pod) { pod.Status.StartTime = ptr.To(at(3)) }), netOne)
	must.Do(t, err)
	must.True(t, slices.Equal(w.Starts, []time.Time{at(3).Time, at(60).Time, at(50).Time}), "restarted twice: got %v", w.Starts)
}

func TestWorkloadOfAPod(t *testing.T) {
	optOut := func(value string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations = map[string]string{rwx.OptOutAnnotation: value} }
	}
	same := func(*rwx.Workload) {}
	unowned := func(w *rwx.Workload) { w.Owner = rwx.Owner{} }
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   func(*rwx.Workload)
	}{
		"without volumes":           {func(*corev1.Pod) {}, same},
		"a kubelet has the pod":     {func(pod *corev1.Pod) { pod.Status.StartTime = ptr.To(at(3)) }, func(w *rwx.Workload) { w.Began = at(3).Time }},
		"no owner":                  {func(pod *corev1.Pod) { pod.OwnerReferences = nil }, unowned},
		"an owner, no controller":   {func(pod *corev1.Pod) { pod.OwnerReferences = pod.OwnerReferences[:1] }, unowned},
		"opted out":                 {optOut("true"), func(w *rwx.Workload) { w.OptOut = true }},
		"opt-out with another word": {optOut("yes"), same},
		"terminating":               {func(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(at(50)) }, func(w *rwx.Workload) { w.Terminating = true }},
		"volumes without claims":    {func(pod *corev1.Pod) { pod.Spec.Volumes = []corev1.Volume{{Name: "tmp"}} }, same},
	} {
		t.Run(name, func(t *testing.T) {
			want := rwx.Workload{
				Namespace: "default", Name: "web-0", UID: "uid-web-0", Owner: rwx.Owner{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "uid-web"},
			}
			test.want(&want)
			got, err := readerOver(t).Workload(t.Context(), workloadPod(test.change), netOne)
			must.True(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
		})
	}
}

func TestMountsOfAWorkload(t *testing.T) {
	shared := rwx.Mount{Volume: "v", Driver: "driver.longhorn.io", Shared: true, Network: netTwo}
	on := func(n multus.Attachment) rwx.Mount {
		return rwx.Mount{Volume: "v", Driver: shared.Driver, Shared: true, Network: n}
	}
	notShared := rwx.Mount{Volume: "v", Driver: shared.Driver, Network: netTwo}
	migratable := rwx.Mount{Volume: "v", Driver: shared.Driver, Network: netTwo, Migratable: true}
	requested := shared
	requested.RemountRequested = at(20).Time
	none := rwx.Mount{}

	headless := serviceOf("v", corev1.ClusterIPNone, netTwo)
	pv := func(changes ...func(*corev1.PersistentVolume)) client.Object {
		return boundVolume("v", "v", "data", changes...)
	}
	released := func(pv *corev1.PersistentVolume) { pv.Status.Phase = corev1.VolumeReleased }
	access := func(modes ...corev1.PersistentVolumeAccessMode) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes = modes }
	}
	driver := func(name string) func(*corev1.PersistentVolume) {
		return func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = name }
	}
	migratablePV := func(pv *corev1.PersistentVolume) {
		pv.Spec.CSI.VolumeAttributes = map[string]string{"migratable": "true"}
	}
	longhornVolume := func(mode string, changes ...func(*longhorn.Volume)) client.Object {
		return volume("v", mode, "attached", "node-1", changes...)
	}
	remount := func(at string) func(*longhorn.Volume) {
		return func(v *longhorn.Volume) { v.Status.RemountRequestedAt = at }
	}
	ephemeral := func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		pod     func(*corev1.Pod)
		want    []rwx.Mount
	}{
		"RWX on its network":                 {[]client.Object{pv(), headless}, uses("data"), []rwx.Mount{shared}},
		"Longhorn bug: static PV by handle":  {[]client.Object{boundVolume("by-hand", "v", "data"), headless, serviceOf("by-hand", "10.43.0.1", multus.Attachment{})}, uses("data"), []rwx.Mount{shared}},
		"Released PV of an earlier claim":    {[]client.Object{boundVolume("a-before", "before", "data", released), pv(), headless}, uses("data"), []rwx.Mount{shared}},
		"only a Released PV":                 {[]client.Object{boundVolume("before", "before", "data", released)}, uses("data"), []rwx.Mount{none}},
		"unbound claim":                      {nil, uses("data"), []rwx.Mount{none}},
		"claim in another namespace":         {[]client.Object{pv(func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "other" })}, uses("data"), []rwx.Mount{none}},
		"PV without CSI":                     {[]client.Object{pv(func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil })}, uses("data"), []rwx.Mount{none}},
		"no claim":                           {nil, uses(), nil},
		"PV without access modes":            {[]client.Object{pv(access()), headless}, uses("data"), []rwx.Mount{notShared}},
		"generic ephemeral volume":           {[]client.Object{boundVolume("v", "v", "web-0-scratch"), headless}, ephemeral, []rwx.Mount{shared}},
		"RWX beside RWO, in the pod's order": {[]client.Object{boundVolume("own", "own", "own", access(corev1.ReadWriteOnce)), pv(), headless}, uses("own", "data"), []rwx.Mount{{Volume: "own", Driver: shared.Driver}, shared}},
		"another driver, same handle":        {[]client.Object{pv(driver("efs.csi.aws.com")), headless, longhornVolume("rwo")}, uses("data"), []rwx.Mount{{Volume: "v", Driver: "efs.csi.aws.com", Shared: true}}},
		"migratable PV":                      {[]client.Object{pv(migratablePV), headless}, uses("data"), []rwx.Mount{migratable}},

		// Longhorn's volume is right where the PV was written by hand.
		"Longhorn says RWO":            {[]client.Object{pv(), headless, longhornVolume("rwo")}, uses("data"), []rwx.Mount{notShared}},
		"Longhorn says RWX":            {[]client.Object{pv(access(corev1.ReadWriteOnce)), headless, longhornVolume("rwx")}, uses("data"), []rwx.Mount{shared}},
		"Longhorn says migratable":     {[]client.Object{pv(), headless, longhornVolume("rwx", func(v *longhorn.Volume) { v.Spec.Migratable = true })}, uses("data"), []rwx.Mount{migratable}},
		"Longhorn says not migratable": {[]client.Object{pv(migratablePV), headless, longhornVolume("rwx")}, uses("data"), []rwx.Mount{shared}},
		"remount requested":            {[]client.Object{pv(), headless, longhornVolume("rwx", remount("2026-01-01T12:00:20Z"))}, uses("data"), []rwx.Mount{requested}},
		"unreadable remount request":   {[]client.Object{pv(), headless, longhornVolume("rwx", remount("soon"))}, uses("data"), []rwx.Mount{shared}},

		"no Service":                  {[]client.Object{pv()}, uses("data"), []rwx.Mount{on(multus.Attachment{})}},
		"Service with a cluster IP":   {[]client.Object{pv(), serviceOf("v", "10.43.0.1", netTwo)}, uses("data"), []rwx.Mount{on(multus.Attachment{})}},
		"headless without a record":   {[]client.Object{pv(), serviceOf("v", corev1.ClusterIPNone, multus.Attachment{})}, uses("data"), []rwx.Mount{on(netOne)}},
		"slim PV is found by a claim": {[]client.Object{slimmed(t, boundVolume("by-hand", "v", "data")), headless}, uses("data"), []rwx.Mount{shared}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := readerOver(t, test.objects...).Workload(t.Context(), workloadPod(test.pod), netOne)
			must.True(t, err == nil && reflect.DeepEqual(got.Mounts, test.want), "got  %+v, %v\nwant %+v", got.Mounts, err, test.want)
		})
	}
}

func slimmed(t *testing.T, pv *corev1.PersistentVolume) client.Object {
	t.Helper()
	slim, err := caches.SlimPersistentVolume(pv)
	must.Do(t, err)
	return slim.(client.Object)
}

func TestVolumesOfClaimShareABucket(t *testing.T) {
	other := ""
	for i := 0; other == "" || Bucket("default/"+other) != Bucket("default/data"); i++ {
		other = fmt.Sprint("other-", i)
	}
	c := indexed(t, boundVolume("pvc-a", "a", "data"), boundVolume("pvc-b", "b", other)).Build()
	volumes, err := VolumesOfClaim(t.Context(), c, "default", "data")
	must.True(t, err == nil && len(volumes) == 1 && volumes[0].Name == "pvc-a", "got %+v, %v", volumes, err)
}

// An unreadable volume must not pass for a volume of another driver.
func TestUnreadableVolumesOfAWorkloadAreAnError(t *testing.T) {
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
			got, err := NewReader(objects.Longhorn, c, c).Workload(t.Context(), workloadPod(uses("data")), netOne)
			must.True(t, errors.Is(err, outage), "got %+v, %v", got, err)
		})
	}
}

func TestPodsOnLeavesOutEndedPods(t *testing.T) {
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
	want := []string{"pending", "running"}
	must.True(t, err == nil && slices.Equal(names, want), "got %q, %v; want %q", names, err, want)
}
