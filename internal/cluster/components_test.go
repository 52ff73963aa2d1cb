package cluster

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cluster/caches"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

const tolerationsAnnotation = "longhorn.io/last-applied-tolerations"

func here(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "longhorn-system", Name: name, UID: "uid-x"}
}

// managerPod is an instance-manager pod as Longhorn makes it.
func managerPod(engine string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: here("im-1"),
		Spec: corev1.PodSpec{
			NodeName: "node-1",
			Containers: []corev1.Container{{
				Name: "instance-manager", Image: "im:1", Args: []string{"instance-manager", "--debug", "daemon"},
				LivenessProbe: &corev1.Probe{TimeoutSeconds: 10, PeriodSeconds: 11},
			}},
			Volumes: []corev1.Volume{
				{Name: "host", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}},
				{Name: "log", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/longhorn/logs/"}}},
			},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	pod.Labels = maps.Clone(storage.Longhorn().InstanceManagerLabels)
	pod.Labels["longhorn.io/data-engine"] = engine
	pod.Annotations = map[string]string{tolerationsAnnotation: "[]"}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func manager(name, node, engine string, change ...func(*longhorn.InstanceManager)) *longhorn.InstanceManager {
	m := &longhorn.InstanceManager{ObjectMeta: here(name), Spec: longhorn.InstanceManagerSpec{NodeID: node, DataEngine: engine}}
	for _, c := range change {
		c(m)
	}
	return m
}

func oneComponent(t *testing.T, objects ...client.Object) catalog.Component {
	t.Helper()
	got, err := readerOver(t, objects...).Components(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	return got[0]
}

func componentNamed(t *testing.T, name string, objects ...client.Object) catalog.Component {
	t.Helper()
	all, err := readerOver(t, objects...).Components(t.Context())
	i := slices.IndexFunc(all, func(c catalog.Component) bool { return c.Name == name })
	if err != nil || i < 0 {
		t.Fatalf("got %+v, %v", all, err)
	}
	return all[i]
}

func TestAnInstanceManagerIsSeenWhole(t *testing.T) {
	want := catalog.Component{
		Kind: catalog.InstanceManager, Name: "im-1", UID: "uid-x", Version: "999", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v1", Ready: true,
		Built: map[catalog.Trait]string{
			catalog.Tolerations: "", catalog.NodeSelector: "", catalog.PriorityClassName: "", catalog.StorageAttachment: "",
			catalog.CPURequest: "0m", catalog.LivenessTimeout: "10", catalog.LogPathTrait: "/var/lib/longhorn/logs", catalog.DataEngine: "true",
		},
	}
	if got := oneComponent(t, managerPod("v1"), manager("im-1", "node-1", "v1")); !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v\nwant %+v", got, want)
	}
}

func TestWhatAPodIsBuiltWith(t *testing.T) {
	noSchedule := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	equal := corev1.Toleration{Key: "b", Value: "c"}
	annotated := func(text string, there ...corev1.Toleration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Annotations[tolerationsAnnotation], pod.Spec.Tolerations = text, there
		}
	}
	const list = `[{"key":"a","operator":"Exists","effect":"NoSchedule"},{"key":"b","operator":"Equal","value":"c"}]`
	class := func(name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
	}
	standard := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 5, GlobalDefault: true}
	networks := func(text string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[storage.NetworksAnnotation] = text }
	}
	args := func(args ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = args }
	}
	of1121 := []string{"start-spdk-tgt", "--spdk-cpumask", "", "--spdk-core-number", "2", "--spdk-memory-size", "2048", "--spdk-iobuf-large-pool-size", "4096", "daemon"}
	isolated := append(slices.Clone(of1121), "--enable-irq-affinity", "--enable-workqueue-affinity")
	ofNow := []string{"instance-manager", "--spdk-cpumask", "0x3", "--spdk-memory-size", "1024", "daemon", "--spdk-no-hugepage"}
	for name, test := range map[string]struct {
		engine  string
		pod     func(*corev1.Pod)
		objects []client.Object
		trait   catalog.Trait
		want    string
		missing bool
	}{
		"tolerations of the list that are there":   {"v1", annotated(list, equal, noSchedule), nil, catalog.Tolerations, "a:NoSchedule;b=c:", false},
		"a toleration that was taken away":         {"v1", annotated(list, noSchedule), nil, catalog.Tolerations, "a:NoSchedule", false},
		"tolerations of somebody else":             {"v1", annotated("[]", noSchedule), nil, catalog.Tolerations, "", false},
		"a list of none, as null":                  {"v1", annotated("null", noSchedule), nil, catalog.Tolerations, "", false},
		"no list":                                  {"v1", annotated("", noSchedule), nil, catalog.Tolerations, "", false},
		"a list that can't be read is like no one": {"v1", annotated("[{", noSchedule), nil, catalog.Tolerations, "?", false},
		"node selector":                            {"v1", func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"b": "", "a": "x"} }, nil, catalog.NodeSelector, "a:x;b:", false},
		"priority class":                           {"v1", class("high"), []client.Object{standard}, catalog.PriorityClassName, "high", false},
		"the default class is none":                {"v1", class("standard"), []client.Object{standard}, catalog.PriorityClassName, "", false},
		"the default class, named by the setting": {
			"v1", class("standard"), []client.Object{standard, &longhorn.Setting{ObjectMeta: here("priority-class"), Value: "standard"}},
			catalog.PriorityClassName, "standard", false,
		},
		"CPU": {"v1", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1.25")}
		}, nil, catalog.CPURequest, "1250m", false},
		"on the storage network, among others": {"v1", networks("default/x@net1,kube-system/one@lhnet1"), nil, catalog.StorageAttachment, "kube-system/one@lhnet1", false},
		"on another network only":              {"v1", networks("kube-system/one@lhnet2"), nil, catalog.StorageAttachment, "", false},
		"networks that can't be read":          {"v1", networks("[{"), nil, catalog.StorageAttachment, "?", false},
		"on the host network there is none":    {"v1", func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }, nil, catalog.StorageAttachment, "", true},
		"CPU mask":                             {"v2", args(ofNow...), nil, catalog.CPUMask, "0x3", false},
		"a CPU mask of its own": {"v2", args(ofNow...), []client.Object{manager("im-1", "node-1", "v2", func(m *longhorn.InstanceManager) {
			m.Spec.DataEngineSpec.V2.CPUMask = "0x3"
		})}, catalog.CPUMask, "", true},
		"no CPU mask where the number of cores decides": {"v2", args(of1121...), nil, catalog.CPUMask, "", true},
		"number of cores":                         {"v2", args(of1121...), nil, catalog.CPUCores, "2", false},
		"no number of cores before 1.12.1":        {"v2", args(ofNow...), nil, catalog.CPUCores, "", true},
		"a large pool":                            {"v2", args(of1121...), nil, catalog.LargePool, "4096", false},
		"the default of a small pool is left out": {"v2", args(of1121...), nil, catalog.SmallPool, "8192", false},
		"no pool before 1.12.1":                   {"v2", args(ofNow...), nil, catalog.SmallPool, "", true},
		"no CPU isolation":                        {"v2", args(of1121...), nil, catalog.CPUIsolation, "false", false},
		"CPU isolation":                           {"v2", args(isolated...), nil, catalog.CPUIsolation, "true", false},
		"half a CPU isolation is none":            {"v2", args(isolated[:len(isolated)-1]...), nil, catalog.CPUIsolation, "false", false},
		"a CPU isolation of its own": {"v2", args(isolated...), []client.Object{manager("im-1", "node-1", "v2", func(m *longhorn.InstanceManager) {
			m.Spec.DataEngineSpec.V2.CPUIsolation = "true"
		})}, catalog.CPUIsolation, "", true},
		"memory":        {"v2", args(ofNow...), nil, catalog.MemorySize, "1024", false},
		"no huge pages": {"v2", args(ofNow...), nil, catalog.Hugepages, "false", false},
		"huge pages":    {"v2", args("--spdk-memory-size", "1024"), nil, catalog.Hugepages, "true", false},
		"no interrupts": {"v2", args(ofNow...), nil, catalog.InterruptMode, "false", false},
		"interrupts":    {"v2", args("--spdk-memory-size", "1024", "--spdk-interrupt-mode"), nil, catalog.InterruptMode, "true", false},
		"memory before 1.10": {"v2", func(pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Gi")}
		}, nil, catalog.MemorySize, "2048", false},
		"no choice of huge pages before 1.10":   {"v2", func(*corev1.Pod) {}, nil, catalog.Hugepages, "", true},
		"a v1 engine is started without all it": {"v1", args(ofNow...), nil, catalog.MemorySize, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := managerPod(test.engine, test.pod)
			slim, err := caches.SlimPods(storage.Profiles())(pod.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			for how, pod := range map[string]client.Object{"whole": pod, "slim": slim.(client.Object)} {
				built := oneComponent(t, append(test.objects, pod)...).Built
				if got, found := built[test.trait]; got != test.want || found == test.missing {
					t.Errorf("%s: got %q, %v", how, got, found)
				}
			}
		})
	}
}

func TestWhatRunsInAnInstanceManager(t *testing.T) {
	engine := func(name, node, desired, state, runsIn string) client.Object {
		return &longhorn.Engine{ObjectMeta: here(name), Spec: longhorn.InstanceSpec{NodeID: node, DesireState: desired}, Status: longhorn.InstanceStatus{CurrentState: state, InstanceManagerName: runsIn}}
	}
	replica := func(name, node, dataEngine, desired, state string) client.Object {
		return &longhorn.Replica{ObjectMeta: here(name), Spec: longhorn.InstanceSpec{NodeID: node, DataEngine: dataEngine, DesireState: desired}, Status: longhorn.InstanceStatus{CurrentState: state}}
	}
	reports := func(state string) func(*longhorn.InstanceManager) {
		return func(m *longhorn.InstanceManager) {
			m.Status.InstanceReplicas = map[string]longhorn.InstanceProcess{"r": {Status: longhorn.InstanceProcessStatus{State: state}}}
		}
	}
	for name, test := range map[string]struct {
		manager func(*longhorn.InstanceManager)
		objects []client.Object
		want    []string
	}{
		"nothing":               {},
		"a replica runs":        {manager: reports("running"), want: []string{"r"}},
		"a replica starts":      {manager: reports("starting"), want: []string{"r"}},
		"a replica stops":       {manager: reports("stopping"), want: []string{"r"}},
		"nobody knows":          {manager: reports("unknown"), want: []string{"r"}},
		"a state of later":      {manager: reports("dancing"), want: []string{"r"}},
		"a replica has stopped": {manager: reports("stopped")},
		"a replica has failed":  {manager: reports("error")},
		"the names of before 1.5 and those of 1.12": {manager: func(m *longhorn.InstanceManager) {
			running := map[string]longhorn.InstanceProcess{"e": {Status: longhorn.InstanceProcessStatus{State: "running"}}}
			m.Status.Instances, m.Status.InstanceEngineFrontends = running, map[string]longhorn.InstanceProcess{"f": running["e"]}
		}, want: []string{"e", "f"}},
		"an engine is to be started here":      {objects: []client.Object{engine("e", "node-1", "running", "", "")}, want: []string{"e"}},
		"a replica is to be started here":      {objects: []client.Object{replica("r", "node-1", "v1", "running", "stopped")}, want: []string{"r"}},
		"a replica is to be stopped, and runs": {objects: []client.Object{replica("r", "node-1", "v1", "stopped", "running")}, want: []string{"r"}},
		"a replica of a detached volume":       {objects: []client.Object{replica("r", "node-1", "v1", "stopped", "stopped")}},
		"a replica that was never started":     {objects: []client.Object{replica("r", "node-1", "v1", "stopped", "")}},
		"a replica elsewhere":                  {objects: []client.Object{replica("r", "node-2", "v1", "running", "running")}},
		"a replica of the other engine":        {objects: []client.Object{replica("r", "node-1", "v2", "running", "running")}},
		"an engine that leaves its node":       {objects: []client.Object{engine("e", "", "stopped", "running", "im-1")}, want: []string{"e"}},
		// Two instance managers of one engine are on a node while Longhorn's image is upgraded.
		"an engine that runs in another here": {objects: []client.Object{
			engine("e", "node-1", "running", "running", "im-2"), manager("im-2", "node-1", "v1"),
		}},
		"an engine that ran in one that is gone": {objects: []client.Object{engine("e", "node-1", "running", "error", "im-2")}, want: []string{"e"}},
		"an engine that is moved here": {objects: []client.Object{
			engine("e", "node-1", "running", "running", "im-2"), manager("im-2", "node-2", "v1"),
		}, want: []string{"e"}},
		"an engine that starts in it": {objects: []client.Object{engine("e", "node-1", "running", "starting", "im-1")}, want: []string{"e"}},
		"each once, in order": {
			reports("running"), []client.Object{replica("r", "node-1", "", "running", "running"), engine("e", "node-1", "running", "running", "im-1")}, []string{"e", "r"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			change := test.manager
			if change == nil {
				change = func(*longhorn.InstanceManager) {}
			}
			objects := append(test.objects, manager("im-1", "node-1", "v1", change))
			if got := componentNamed(t, "im-1", append(objects, managerPod("v1"))...); !slices.Equal(got.Uses, test.want) {
				t.Errorf("got %v", got.Uses)
			}
			if got := componentNamed(t, "im-1", objects...); !got.Missing || !slices.Equal(got.Uses, test.want) {
				t.Errorf("without a pod: got %+v", got)
			}
		})
	}
}

func TestAManagerWithoutAPodIsMissing(t *testing.T) {
	ended := managerPod("v1", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	images := &longhorn.BackingImageManager{ObjectMeta: here("bim-1"), Spec: longhorn.BackingImageManagerSpec{NodeID: "node-2"}}
	got, err := readerOver(t, ended, manager("im-1", "node-1", ""), manager("im-2", "node-1", "v2"), images).Components(t.Context())
	want := []catalog.Component{
		{Kind: catalog.BackingImageManager, Name: "bim-1", Node: "node-2", Missing: true},
		{Kind: catalog.InstanceManager, Name: "im-1", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v1", Missing: true},
		{Kind: catalog.InstanceManager, Name: "im-2", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v2", Missing: true},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestAPodSaysHowItIs(t *testing.T) {
	pod := managerPod("", func(pod *corev1.Pod) {
		pod.Status.Conditions = nil
		pod.Annotations[storage.OptOutAnnotation] = "true"
		pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
	})
	got := oneComponent(t, pod, manager("im-1", "node-1", "v2"))
	if got.Ready || !got.OptOut || !got.Terminating || got.Engine != "v2" {
		t.Fatalf("got %+v", got)
	}
}

func TestFilesOnTheirWayKeepABackingImageManager(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: here("bim-1"), Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Labels = storage.Longhorn().BackingImageManagerLabels
	images := &longhorn.BackingImageManager{ObjectMeta: here("bim-1")}
	images.Status.BackingImageFileMap = map[string]longhorn.BackingImageFileInfo{
		"pending": {State: "pending"}, "starting": {State: "starting"}, "written": {State: "in-progress"},
		"sent": {State: "ready", SendingReference: 1}, "ready": {State: "ready"}, "failed": {State: "failed"},
	}
	got := oneComponent(t, pod, images)
	if got.Kind != catalog.BackingImageManager || !slices.Equal(got.Uses, []string{"pending", "sent", "starting", "written"}) {
		t.Fatalf("got %+v", got)
	}
	if _, found := got.Built[catalog.CPURequest]; found {
		t.Error("only instance managers have their CPU from a setting")
	}
}

func TestAShareManagerIsUsedWhileItsVolumeIsAttached(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: here("share-manager-v")}
	pod.Labels = map[string]string{"longhorn.io/share-manager": "v"}
	maps.Copy(pod.Labels, storage.Longhorn().ServerLabels)
	pod.OwnerReferences = madeBy("longhorn.io/v1beta2", "ShareManager", "v")
	for name, test := range map[string]struct {
		volume client.Object
		want   []string
	}{
		"attached":  {volume("v", "rwx", "attached", "node-1"), []string{"v"}},
		"detached":  {volume("v", "rwx", "detached", ""), nil},
		"not known": {volume("w", "rwx", "detached", ""), []string{"v"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneComponent(t, pod, test.volume)
			if _, onNetwork := got.Built[catalog.StorageAttachment]; got.Kind != catalog.ShareManager || !slices.Equal(got.Uses, test.want) || onNetwork {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// What share managers are built with is kept once where they are built alike.
func TestEachShareManagerHasItsOwnBuild(t *testing.T) {
	classes := map[string]string{"a": "high", "b": "high", "c": "low", "d": "", "e": "high"}
	var pods []client.Object
	for volume, class := range classes {
		pod := &corev1.Pod{ObjectMeta: here("share-manager-" + volume), Spec: corev1.PodSpec{PriorityClassName: class}}
		pod.Labels = map[string]string{"longhorn.io/share-manager": volume}
		maps.Copy(pod.Labels, storage.Longhorn().ServerLabels)
		pod.OwnerReferences = madeBy("longhorn.io/v1beta2", "ShareManager", volume)
		pods = append(pods, pod)
	}
	for volume, class := range classes {
		if got := componentNamed(t, "share-manager-"+volume, pods...); got.Built[catalog.PriorityClassName] != class {
			t.Errorf("%s: got %v, want %q", volume, got.Built, class)
		}
	}
}

func TestTemplatesAreReadyWhenAllTheirPodsAre(t *testing.T) {
	managed := func(name string, generation int64) metav1.ObjectMeta {
		meta := here(name)
		meta.Labels, meta.Generation = storage.Longhorn().ManagedLabels, generation
		return meta
	}
	deployment := func(replicas *int32, status appsv1.DeploymentStatus) client.Object {
		return &appsv1.Deployment{ObjectMeta: managed("csi-attacher", 2), Spec: appsv1.DeploymentSpec{Replicas: replicas}, Status: status}
	}
	daemonSet := func(status appsv1.DaemonSetStatus) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: managed("engine-image-ei-1", 2), Status: status}
	}
	for name, test := range map[string]struct {
		object         client.Object
		ready          bool
		updated, total int
	}{
		"all there":             {deployment(ptr.To[int32](3), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}), true, 3, 3},
		"one by default":        {deployment(nil, appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}), true, 1, 1},
		"a change not yet seen": {deployment(ptr.To[int32](3), appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}), false, 0, 3},
		"one of before is left": {deployment(ptr.To[int32](3), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 4, UpdatedReplicas: 3, AvailableReplicas: 3}), false, 3, 3},
		"one is not available":  {deployment(ptr.To[int32](3), appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 2}), false, 3, 3},
		"scaled to none":        {deployment(ptr.To[int32](0), appsv1.DeploymentStatus{ObservedGeneration: 2}), true, 0, 0},

		"DaemonSet, all there":             {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}), true, 3, 3},
		"DaemonSet, a change not yet seen": {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 1, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 3}), false, 0, 3},
		"DaemonSet, rolling":               {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberAvailable: 3}), false, 2, 3},
		"DaemonSet, one not available":     {daemonSet(appsv1.DaemonSetStatus{ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 3, NumberAvailable: 2}), false, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneComponent(t, test.object)
			if got.Ready != test.ready || got.Updated != test.updated || got.Total != test.total || got.Client {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestWhatATemplateIsBuiltWith(t *testing.T) {
	ds := &appsv1.DaemonSet{ObjectMeta: here("longhorn-csi-plugin")} // without the label
	ds.Annotations = map[string]string{tolerationsAnnotation: `[{"key":"a","operator":"Exists"}]`}
	ds.Spec.Template.Annotations = map[string]string{storage.OptOutAnnotation: "true"}
	ds.Spec.Template.Spec = corev1.PodSpec{
		Tolerations:  []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}, {Key: "z", Operator: corev1.TolerationOpExists}},
		NodeSelector: map[string]string{"a": "b"}, PriorityClassName: "standard",
		Containers: []corev1.Container{
			{
				Name: "node-driver-registrar", LivenessProbe: &corev1.Probe{PeriodSeconds: 5, TimeoutSeconds: 4, FailureThreshold: 3},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("0.1")}},
			},
			{Name: "longhorn-csi-plugin"},
		},
	}
	standard := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 5, GlobalDefault: true}
	got := oneComponent(t, ds, standard)
	if got.Kind != catalog.DaemonSetComponent || !got.Client || !got.OptOut {
		t.Fatalf("got %+v", got)
	}
	for trait, want := range map[catalog.Trait]string{
		catalog.Tolerations: "a:", catalog.NodeSelector: "a:b", catalog.PriorityClassName: "standard",
		catalog.ProbePeriod: "5", catalog.ProbeTimeout: "4", catalog.ProbeFailures: "3",
		catalog.Resources: `{"node-driver-registrar":{"requests":{"cpu":"100m"}}}`,
	} {
		if got.Built[trait] != want {
			t.Errorf("%s is %q", trait, got.Built[trait])
		}
	}
	if _, found := got.Built[catalog.StorageAttachment]; found {
		t.Error("a template's network is not a setting's trait")
	}
}

// What an installer brought is its own.
func TestUnmanagedTemplatesAreNoComponents(t *testing.T) {
	got, err := readerOver(t, &appsv1.DaemonSet{ObjectMeta: here("longhorn-manager")}, &appsv1.Deployment{ObjectMeta: here("longhorn-ui")}).Components(t.Context())
	if err != nil || len(got) != 0 {
		t.Fatalf("got %+v, %v", got, err)
	}
}

func TestComponentsComeInOrder(t *testing.T) {
	var objects []client.Object
	for _, name := range []string{"c", "a", "b"} {
		for _, node := range []string{"node-2", "node-1"} {
			objects = append(objects, manager(fmt.Sprintf("%s-%s", name, node), node, "v1"))
		}
	}
	got, err := readerOver(t, objects...).Components(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range got {
		names = append(names, c.Name)
	}
	if want := []string{"a-node-1", "b-node-1", "c-node-1", "a-node-2", "b-node-2", "c-node-2"}; !slices.Equal(names, want) {
		t.Fatalf("got %v", names)
	}
}

// A DaemonSet that tolerates all taints counts its pods on nodes that are down.
func TestRegressionADaemonSetDoesNotWaitForNodesThatAreDown(t *testing.T) {
	labels := map[string]string{"app": "ei"}
	pod := func(node, generation string, ready bool) client.Object {
		p := &corev1.Pod{ObjectMeta: here("ei-" + node), Spec: corev1.PodSpec{NodeName: node}}
		p.Labels = map[string]string{"app": "ei", templateGenerationLabel: generation}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "engine-image-ei-1", UID: "uid-x", Controller: ptr.To(true)}}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return p
	}
	node := func(name string, ready corev1.ConditionStatus) client.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	up := []client.Object{node("node-1", corev1.ConditionTrue), node("node-2", corev1.ConditionTrue), node("node-3", corev1.ConditionUnknown)}
	for name, test := range map[string]struct {
		pods                []client.Object
		misscheduled, total int
		updated             int
		ready               bool
	}{
		"all that can be are":                  {pods: []client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("node-3", "1", false)}, total: 2, updated: 2, ready: true},
		"one that is up is of before":          {pods: []client.Object{pod("node-1", "1", true), pod("node-2", "2", true), pod("node-3", "1", false)}, total: 2, updated: 1},
		"one that is up is not Ready":          {pods: []client.Object{pod("node-1", "2", false), pod("node-2", "2", true), pod("node-3", "1", false)}, total: 2, updated: 1},
		"one that is up is yet to be made":     {pods: []client.Object{pod("node-2", "2", true), pod("node-3", "2", false)}, total: 2, updated: 1},
		"one has no node yet":                  {pods: []client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("", "2", false)}, total: 3, updated: 2},
		"the lost one is not counted":          {pods: []client.Object{pod("node-1", "2", true), pod("node-3", "2", false)}, misscheduled: 1, total: 3, updated: 2},
		"a node that is gone was not counted":  {pods: []client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("node-9", "2", false)}, total: 3, updated: 2},
		"none of it is on a node that is down": {pods: []client.Object{pod("node-1", "2", true), pod("node-2", "2", true)}, total: 3, updated: 2},
	} {
		t.Run(name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: here("engine-image-ei-1"), Status: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberAvailable: 2, NumberMisscheduled: int32(test.misscheduled),
			}}
			ds.Labels, ds.Generation = storage.Longhorn().ManagedLabels, 2
			ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}
			ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			got := oneComponent(t, append(append([]client.Object{ds}, up...), test.pods...)...)
			if got.Total != test.total || got.Updated != test.updated || got.Ready != test.ready {
				t.Fatalf("got %d of %d, Ready %t", got.Updated, got.Total, got.Ready)
			}
		})
	}
}
