package reads

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

const tolerationsAnnotation = "longhorn.io/last-applied-tolerations"

func here(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "longhorn-system", Name: name, UID: "uid-x"}
}

// managerPod is an instance-manager pod as Longhorn makes it.
func managerPod(engine string, changes ...func(*corev1.Pod)) *corev1.Pod {
	hostPath := func(name, path string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path}}}
	}
	pod := &corev1.Pod{ObjectMeta: here("im-1"), Spec: corev1.PodSpec{
		NodeName: "node-1",
		Containers: []corev1.Container{{
			Name: "instance-manager", Image: "im:1", Args: []string{"instance-manager", "--debug", "daemon"},
			LivenessProbe: &corev1.Probe{TimeoutSeconds: 10, PeriodSeconds: 11},
		}},
		Volumes: []corev1.Volume{hostPath("host", "/"), hostPath("log", "/var/lib/longhorn/logs/")},
	}}
	pod.Status.Phase = corev1.PodRunning
	objects.ReadyPod(pod)
	pod.Labels = maps.Clone(objects.Longhorn.InstanceManagerLabels)
	pod.Labels["longhorn.io/data-engine"] = engine
	pod.Annotations = map[string]string{tolerationsAnnotation: "[]"}
	return objects.With(pod, changes...)
}

func manager(name, node, engine string, changes ...func(*longhorn.InstanceManager)) *longhorn.InstanceManager {
	return objects.With(&longhorn.InstanceManager{ObjectMeta: here(name), Spec: longhorn.InstanceManagerSpec{NodeID: node, DataEngine: engine}}, changes...)
}

// sharePod is the share manager's pod of a volume.
func sharePod(volume, class string) client.Object {
	return objects.ServerPod(volume, func(pod *corev1.Pod) { pod.Spec.PriorityClassName = class })
}

func componentsOf(t *testing.T, stored ...client.Object) ([]catalog.Component, error) {
	t.Helper()
	f, err := readerOver(t, stored...).Facts(t.Context(), FactsOptions{})
	return f.Components, err
}

func oneComponent(t *testing.T, stored ...client.Object) catalog.Component {
	t.Helper()
	got, err := componentsOf(t, stored...)
	must.True(t, err == nil && len(got) == 1, "got %+v, %v", got, err)
	return got[0]
}

func componentNamed(t *testing.T, name string, stored ...client.Object) catalog.Component {
	t.Helper()
	all, err := componentsOf(t, stored...)
	i := slices.IndexFunc(all, func(c catalog.Component) bool { return c.Name == name })
	must.True(t, err == nil && i >= 0, "got %+v, %v", all, err)
	return all[i]
}

func TestInstanceManagerComponent(t *testing.T) {
	want := catalog.Component{
		Kind: catalog.InstanceManager, Name: "im-1", UID: "uid-x", Version: "999", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v1", Ready: true,
		Built: map[catalog.Trait]string{
			catalog.Tolerations: "", catalog.NodeSelector: "", catalog.PriorityClassName: "", catalog.StorageAttachment: "",
			catalog.CPURequest: "0m", catalog.LivenessTimeout: "10", catalog.LogPathTrait: "/var/lib/longhorn/logs", catalog.DataEngine: "true",
		},
	}
	got := oneComponent(t, managerPod("v1"), manager("im-1", "node-1", "v1"))
	must.True(t, reflect.DeepEqual(got, want), "got  %+v\nwant %+v", got, want)
}

func TestTraitsOfAPod(t *testing.T) {
	noSchedule := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	equal := corev1.Toleration{Key: "b", Value: "c"}
	annotated := func(text string, present ...corev1.Toleration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[tolerationsAnnotation], pod.Spec.Tolerations = text, present }
	}
	const list = `[{"key":"a","operator":"Exists","effect":"NoSchedule"},{"key":"b","operator":"Equal","value":"c"}]`
	class := func(name string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.PriorityClassName = name }
	}
	standard := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 5, GlobalDefault: true}
	networks := func(text string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Annotations[multus.NetworksAnnotation] = text }
	}
	args := func(args ...string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.Containers[0].Args = args }
	}
	selector := func(pod *corev1.Pod) { pod.Spec.NodeSelector = map[string]string{"b": "", "a": "x"} }
	cpu := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1.25")}
	}
	hugepages := func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("2Gi")}
	}
	v1121 := []string{"start-spdk-tgt", "--spdk-cpumask", "", "--spdk-core-number", "2", "--spdk-memory-size", "2048", "--spdk-iobuf-large-pool-size", "4096", "daemon"}
	isolated := append(slices.Clone(v1121), "--enable-irq-affinity", "--enable-workqueue-affinity")
	v110 := []string{"instance-manager", "--spdk-cpumask", "0x3", "--spdk-memory-size", "1024", "daemon", "--spdk-no-hugepage"}
	ownMask := manager("im-1", "node-1", "v2", func(m *longhorn.InstanceManager) { m.Spec.DataEngineSpec.V2.CPUMask = "0x3" })
	ownIsolation := manager("im-1", "node-1", "v2", func(m *longhorn.InstanceManager) { m.Spec.DataEngineSpec.V2.CPUIsolation = "true" })
	const missing = "missing"
	for name, test := range map[string]struct {
		engine string
		pod    func(*corev1.Pod)
		object client.Object
		trait  catalog.Trait
		want   string
	}{
		"tolerations of the list":             {"v1", annotated(list, equal, noSchedule), nil, catalog.Tolerations, "a:NoSchedule;b=c:"},
		"toleration removed":                  {"v1", annotated(list, noSchedule), nil, catalog.Tolerations, "a:NoSchedule"},
		"foreign toleration":                  {"v1", annotated("[]", noSchedule), nil, catalog.Tolerations, ""},
		"no list of tolerations":              {"v1", annotated("", noSchedule), nil, catalog.Tolerations, ""},
		"unreadable list":                     {"v1", annotated("[{", noSchedule), nil, catalog.Tolerations, "?"},
		"node selector":                       {"v1", selector, nil, catalog.NodeSelector, "a:x;b:"},
		"priority class":                      {"v1", class("high"), standard, catalog.PriorityClassName, "high"},
		"default class counts as none":        {"v1", class("standard"), standard, catalog.PriorityClassName, ""},
		"CPU":                                 {"v1", cpu, nil, catalog.CPURequest, "1250m"},
		"storage network among others":        {"v1", networks("default/x@net1,kube-system/one@lhnet1"), nil, catalog.StorageAttachment, "kube-system/one@lhnet1"},
		"only another network":                {"v1", networks("kube-system/one@lhnet2"), nil, catalog.StorageAttachment, ""},
		"unreadable networks":                 {"v1", networks("[{"), nil, catalog.StorageAttachment, "?"},
		"host network":                        {"v1", func(pod *corev1.Pod) { pod.Spec.HostNetwork = true }, nil, catalog.StorageAttachment, missing},
		"CPU mask":                            {"v2", args(v110...), nil, catalog.CPUMask, "0x3"},
		"CPU mask of the instance manager":    {"v2", args(v110...), ownMask, catalog.CPUMask, missing},
		"number of cores replaces a CPU mask": {"v2", args(v1121...), nil, catalog.CPUMask, missing},
		"number of cores":                     {"v2", args(v1121...), nil, catalog.CPUCores, "2"},
		"number of cores before 1.12.1":       {"v2", args(v110...), nil, catalog.CPUCores, missing},
		"large pool":                          {"v2", args(v1121...), nil, catalog.LargePool, "4096"},
		"default small pool":                  {"v2", args(v1121...), nil, catalog.SmallPool, "8192"},
		"small pool before 1.12.1":            {"v2", args(v110...), nil, catalog.SmallPool, missing},
		"no CPU isolation":                    {"v2", args(v1121...), nil, catalog.CPUIsolation, "false"},
		"CPU isolation":                       {"v2", args(isolated...), nil, catalog.CPUIsolation, "true"},
		"half a CPU isolation":                {"v2", args(isolated[:len(isolated)-1]...), nil, catalog.CPUIsolation, "false"},
		"isolation of the instance manager":   {"v2", args(isolated...), ownIsolation, catalog.CPUIsolation, missing},
		"memory":                              {"v2", args(v110...), nil, catalog.MemorySize, "1024"},
		"memory before 1.10":                  {"v2", hugepages, nil, catalog.MemorySize, "2048"},
		"memory of a v1 engine":               {"v1", args(v110...), nil, catalog.MemorySize, missing},
		"no huge pages":                       {"v2", args(v110...), nil, catalog.Hugepages, "false"},
		"huge pages":                          {"v2", args("--spdk-memory-size", "1024"), nil, catalog.Hugepages, "true"},
		"huge pages before 1.10":              {"v2", func(*corev1.Pod) {}, nil, catalog.Hugepages, missing},
		"no interrupts":                       {"v2", args(v110...), nil, catalog.InterruptMode, "false"},
		"interrupts":                          {"v2", args("--spdk-memory-size", "1024", "--spdk-interrupt-mode"), nil, catalog.InterruptMode, "true"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := managerPod(test.engine, test.pod)
			slim, err := caches.SlimPods(&objects.Longhorn)(pod.DeepCopy())
			must.Do(t, err)
			for how, pod := range map[string]client.Object{"whole": pod, "slim": slim.(client.Object)} {
				stored := []client.Object{pod}
				if test.object != nil {
					stored = append(stored, test.object)
				}
				got, found := oneComponent(t, stored...).Built[test.trait]
				if !found {
					got = missing
				}
				must.Equal(t, got, test.want, how)
			}
		})
	}
	named := &longhorn.Setting{ObjectMeta: here("priority-class"), Value: "standard"}
	if got := oneComponent(t, managerPod("v1", class("standard")), standard, named).Built[catalog.PriorityClassName]; got != "standard" {
		t.Errorf("default class that the setting names: got %q", got)
	}
}

func TestInstancesUseAnInstanceManager(t *testing.T) {
	engine := func(name, node, desired, state, runsIn string) client.Object {
		return &longhorn.Engine{ObjectMeta: here(name), Spec: longhorn.InstanceSpec{NodeID: node, DesireState: desired}, Status: longhorn.InstanceStatus{CurrentState: state, InstanceManagerName: runsIn}}
	}
	replica := func(name, node, dataEngine, desired, state string) client.Object {
		return &longhorn.Replica{ObjectMeta: here(name), Spec: longhorn.InstanceSpec{NodeID: node, DataEngine: dataEngine, DesireState: desired}, Status: longhorn.InstanceStatus{CurrentState: state}}
	}
	reports := func(state string) func(*longhorn.InstanceManager) {
		return func(m *longhorn.InstanceManager) { m.Status.InstanceReplicas = processes(state, "r") }
	}
	versions := func(m *longhorn.InstanceManager) {
		m.Status.Instances, m.Status.InstanceEngineFrontends = processes("running", "e"), processes("running", "f")
	}
	shards := func(state string) func(*longhorn.InstanceManager) {
		return func(m *longhorn.InstanceManager) {
			m.Status.InstanceShards, m.Status.InstanceShardGroups = processes(state, "pvc-a-0"), processes(state, "pvc-b")
		}
	}
	other := func(node string) client.Object { return manager("im-2", node, "v1") }
	for name, test := range map[string]struct {
		manager func(*longhorn.InstanceManager)
		objects []client.Object
		want    []string
	}{
		"nothing":                       {nil, nil, nil},
		"replica runs":                  {reports("running"), nil, []string{"r"}},
		"replica starts":                {reports("starting"), nil, []string{"r"}},
		"unknown state":                 {reports("dancing"), nil, []string{"r"}},
		"replica stopped":               {reports("stopped"), nil, nil},
		"replica terminated":            {reports("terminated"), nil, nil},
		"replica failed":                {reports("error"), nil, nil},
		"fields before 1.5 and of 1.12": {versions, nil, []string{"e", "f"}},
		"shard of an attached volume":   {shards("running"), []client.Object{volumeIn("attached", "pvc-a"), volumeIn("detached", "pvc-b")}, []string{"pvc-a-0"}},
		"group of an attaching volume":  {shards("running"), []client.Object{volumeIn("detached", "pvc-a"), volumeIn("attaching", "pvc-b")}, []string{"pvc-b"}},
		"shards of unknown volumes":     {shards("running"), nil, []string{"pvc-b", "pvc-a-0"}},
		"stopped shard":                 {shards("stopped"), []client.Object{volumeIn("attached", "pvc-a"), volumeIn("attached", "pvc-b")}, nil},
		"engine to be started":          {nil, []client.Object{engine("e", "node-1", "running", "", "")}, []string{"e"}},
		"replica to be started":         {nil, []client.Object{replica("r", "node-1", "v1", "running", "stopped")}, []string{"r"}},
		"replica to be stopped, runs":   {nil, []client.Object{replica("r", "node-1", "v1", "stopped", "running")}, []string{"r"}},
		"replica of a detached volume":  {nil, []client.Object{replica("r", "node-1", "v1", "stopped", "stopped")}, nil},
		"replica never started":         {nil, []client.Object{replica("r", "node-1", "v1", "stopped", "")}, nil},
		"replica elsewhere":             {nil, []client.Object{replica("r", "node-2", "v1", "running", "running")}, nil},
		"replica of the other engine":   {nil, []client.Object{replica("r", "node-1", "v2", "running", "running")}, nil},
		"engine leaves its node":        {nil, []client.Object{engine("e", "", "stopped", "running", "im-1")}, []string{"e"}},
		"engine starts here":            {nil, []client.Object{engine("e", "node-1", "running", "starting", "im-1")}, []string{"e"}},
		// Two instance managers of one engine are on a node while Longhorn's image is upgraded.
		"engine runs in another here": {nil, []client.Object{engine("e", "node-1", "running", "running", "im-2"), other("node-1")}, nil},
		"engine of a deleted manager": {nil, []client.Object{engine("e", "node-1", "running", "error", "im-2")}, []string{"e"}},
		"engine moves here":           {nil, []client.Object{engine("e", "node-1", "running", "running", "im-2"), other("node-2")}, []string{"e"}},
		"sorted, each once":           {reports("running"), []client.Object{replica("r", "node-1", "", "running", "running"), engine("e", "node-1", "running", "running", "im-1")}, []string{"e", "r"}},
	} {
		t.Run(name, func(t *testing.T) {
			change := test.manager
			if change == nil {
				change = func(*longhorn.InstanceManager) {}
			}
			stored := append(test.objects, manager("im-1", "node-1", "v1", change))
			got := componentNamed(t, "im-1", append(stored, managerPod("v1"))...)
			must.True(t, slices.Equal(got.Uses, test.want), "got %v", got.Uses)
			got = componentNamed(t, "im-1", stored...)
			must.True(t, got.Missing && slices.Equal(got.Uses, test.want), "without a pod: got %+v", got)
			now, err := readerOver(t, stored...).InstanceManagerUses(t.Context(), got)
			must.True(t, err == nil && slices.Equal(now, test.want), "live: got %v, %v", now, err)
		})
	}
}

func TestManagerWithoutAPodIsMissing(t *testing.T) {
	ended := managerPod("v1", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	images := &longhorn.BackingImageManager{ObjectMeta: here("bim-1"), Spec: longhorn.BackingImageManagerSpec{NodeID: "node-2"}}
	got, err := componentsOf(t, ended, manager("im-1", "node-1", ""), manager("im-2", "node-1", "v2"), images)
	want := []catalog.Component{
		{Kind: catalog.BackingImageManager, Name: "bim-1", Node: "node-2", Missing: true},
		{Kind: catalog.InstanceManager, Name: "im-1", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v1", Missing: true},
		{Kind: catalog.InstanceManager, Name: "im-2", ManagerUID: "uid-x", ManagerVersion: "999", Node: "node-1", Engine: "v2", Missing: true},
	}
	must.True(t, err == nil && reflect.DeepEqual(got, want), "got  %+v, %v\nwant %+v", got, err, want)
}

func TestConditionsOfAPod(t *testing.T) {
	pod := managerPod("", func(pod *corev1.Pod) {
		pod.Status.Conditions = nil
		pod.Annotations[rwx.OptOutAnnotation] = "true"
		pod.DeletionTimestamp, pod.Finalizers = ptr.To(metav1.Now()), []string{"x/y"}
	})
	got := oneComponent(t, pod, manager("im-1", "node-1", "v2"))
	must.True(t, !got.Ready && got.OptOut && got.Terminating && got.Engine == "v2", "got %+v", got)
}

func TestFilesInTransitUseABackingImageManager(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: here("bim-1"), Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Labels = objects.Longhorn.BackingImageManagerLabels
	images := &longhorn.BackingImageManager{ObjectMeta: here("bim-1")}
	images.Status.BackingImageFileMap = map[string]longhorn.BackingImageFileInfo{
		"pending": {State: "pending"}, "starting": {State: "starting"}, "written": {State: "in-progress"},
		"sent": {State: "ready", SendingReference: 1}, "ready": {State: "ready"}, "failed": {State: "failed"},
	}
	got := oneComponent(t, pod, images)
	must.True(t, got.Kind == catalog.BackingImageManager && slices.Equal(got.Uses, []string{"pending", "sent", "starting", "written"}), "got %+v", got)
	_, found := got.Built[catalog.CPURequest]
	must.True(t, !found, "only instance managers have their CPU from a setting")
}

func TestShareManagerIsUsedUntilItsVolumeDetaches(t *testing.T) {
	for name, test := range map[string]struct {
		volume client.Object
		want   []string
	}{
		"attached":  {volume("v", "rwx", "attached", "node-1"), []string{"v"}},
		"detached":  {volume("v", "rwx", "detached", ""), nil},
		"not known": {volume("w", "rwx", "detached", ""), []string{"v"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneComponent(t, sharePod("v", ""), test.volume)
			_, onNetwork := got.Built[catalog.StorageAttachment]
			must.True(t, got.Kind == catalog.ShareManager && slices.Equal(got.Uses, test.want) && !onNetwork, "got %+v", got)
		})
	}
}

// Share managers of equal traits share one map of them.
func TestEachShareManagerHasItsOwnTraits(t *testing.T) {
	classes := map[string]string{"a": "high", "b": "high", "c": "low", "d": "", "e": "high"}
	var pods []client.Object
	for volume, class := range classes {
		pods = append(pods, sharePod(volume, class))
	}
	for volume, class := range classes {
		got := componentNamed(t, "share-manager-"+volume, pods...)
		must.True(t, got.Built[catalog.PriorityClassName] == class, "%s: got %v, want %q", volume, got.Built, class)
	}
}

func TestTemplateIsReadyWhenAllItsPodsAre(t *testing.T) {
	managed := func(name string, generation int64) metav1.ObjectMeta {
		meta := here(name)
		meta.Labels, meta.Generation = objects.Longhorn.ManagedLabels, generation
		return meta
	}
	deployment := func(replicas *int32, observed int64, all, updated, available int32) client.Object {
		return &appsv1.Deployment{ObjectMeta: managed("csi-attacher", 2), Spec: appsv1.DeploymentSpec{Replicas: replicas},
			Status: appsv1.DeploymentStatus{ObservedGeneration: observed, Replicas: all, UpdatedReplicas: updated, AvailableReplicas: available}}
	}
	daemonSet := func(observed int64, updated, available int32) client.Object {
		return &appsv1.DaemonSet{ObjectMeta: managed("engine-image-ei-1", 2),
			Status: appsv1.DaemonSetStatus{ObservedGeneration: observed, DesiredNumberScheduled: 3, UpdatedNumberScheduled: updated, NumberAvailable: available}}
	}
	for name, test := range map[string]struct {
		object         client.Object
		ready          bool
		updated, total int
	}{
		"Deployment, all available":     {deployment(ptr.To[int32](3), 2, 3, 3, 3), true, 3, 3},
		"Deployment, one by default":    {deployment(nil, 2, 1, 1, 1), true, 1, 1},
		"Deployment, not observed":      {deployment(ptr.To[int32](3), 1, 3, 3, 3), false, 0, 3},
		"Deployment, one old pod":       {deployment(ptr.To[int32](3), 2, 4, 3, 3), false, 3, 3},
		"Deployment, one not available": {deployment(ptr.To[int32](3), 2, 3, 3, 2), false, 3, 3},
		"Deployment, scaled to zero":    {deployment(ptr.To[int32](0), 2, 0, 0, 0), true, 0, 0},
		"DaemonSet, all available":      {daemonSet(2, 3, 3), true, 3, 3},
		"DaemonSet, not observed":       {daemonSet(1, 3, 3), false, 0, 3},
		"DaemonSet, rolling":            {daemonSet(2, 2, 3), false, 2, 3},
		"DaemonSet, one not available":  {daemonSet(2, 3, 2), false, 3, 3},
	} {
		t.Run(name, func(t *testing.T) {
			got := oneComponent(t, test.object)
			must.True(t, got.Ready == test.ready && got.Updated == test.updated && got.Total == test.total && !got.Client, "got %+v", got)
		})
	}
}

func TestTraitsOfATemplate(t *testing.T) {
	ds := &appsv1.DaemonSet{ObjectMeta: here("longhorn-csi-plugin")} // without the label
	ds.Annotations = map[string]string{tolerationsAnnotation: `[{"key":"a","operator":"Exists"}]`}
	ds.Spec.Template.Annotations = map[string]string{rwx.OptOutAnnotation: "true"}
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
	must.True(t, got.Kind == catalog.DaemonSetComponent && got.Client && got.OptOut, "got %+v", got)
	for trait, want := range map[catalog.Trait]string{
		catalog.Tolerations: "a:", catalog.NodeSelector: "a:b", catalog.PriorityClassName: "standard",
		catalog.ProbePeriod: "5", catalog.ProbeTimeout: "4", catalog.ProbeFailures: "3",
		catalog.Resources: `{"node-driver-registrar":{"requests":{"cpu":"100m"}}}`,
	} {
		must.Equal(t, got.Built[trait], want, "%s ", trait)
	}
	_, found := got.Built[catalog.StorageAttachment]
	must.True(t, !found, "a template's network is not a setting's trait")
}

func TestTemplatesOfTheInstallerAreNotComponents(t *testing.T) {
	got, err := componentsOf(t, &appsv1.DaemonSet{ObjectMeta: here("longhorn-manager")}, &appsv1.Deployment{ObjectMeta: here("longhorn-ui")})
	must.True(t, err == nil && len(got) == 0, "got %+v, %v", got, err)
}

func TestComponentsAreSorted(t *testing.T) {
	got, err := componentsOf(t, manager("b", "node-1", "v1"), manager("c", "node-2", "v1"), manager("a", "node-2", "v1"), sharePod("v", ""))
	must.Do(t, err)
	var names []string
	for _, c := range got {
		names = append(names, c.Name)
	}
	must.Equal(t, names, []string{"b", "a", "c", "share-manager-v"})
}

// A DaemonSet that tolerates all taints counts its pods on nodes that are down.
func TestRegressionDaemonSetIgnoresNodesThatAreDown(t *testing.T) {
	labels := map[string]string{"app": "ei"}
	pod := func(node, generation string, ready bool) client.Object {
		p := &corev1.Pod{ObjectMeta: here("ei-" + node), Spec: corev1.PodSpec{NodeName: node}}
		p.Labels, p.OwnerReferences = map[string]string{"app": "ei", templateGenerationLabel: generation, appsv1.ControllerRevisionHashLabelKey: generation}, madeBy("apps/v1", "DaemonSet", "engine-image-ei-1")
		p.OwnerReferences[0].UID = "uid-x"
		if ready {
			objects.ReadyPod(p)
		}
		return p
	}
	up := []client.Object{objects.Node("node-1"), objects.Node("node-2"), objects.Node("node-3", objects.Readiness(corev1.ConditionUnknown, time.Time{}))}
	for name, test := range map[string]struct {
		pods                         []client.Object
		misscheduled, updated, total int
		ready                        bool
	}{
		"all updated that can be":         {[]client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("node-3", "1", false)}, 0, 2, 2, true},
		"an old pod on a Ready node":      {[]client.Object{pod("node-1", "1", true), pod("node-2", "2", true), pod("node-3", "1", false)}, 0, 1, 2, false},
		"a pod not Ready on a Ready node": {[]client.Object{pod("node-1", "2", false), pod("node-2", "2", true), pod("node-3", "1", false)}, 0, 1, 2, false},
		"no pod on a Ready node":          {[]client.Object{pod("node-2", "2", true), pod("node-3", "2", false)}, 0, 1, 2, false},
		"a pod without a node":            {[]client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("", "2", false)}, 0, 2, 3, false},
		"misscheduled pod":                {[]client.Object{pod("node-1", "2", true), pod("node-3", "2", false)}, 1, 2, 3, false},
		"pod of a deleted node":           {[]client.Object{pod("node-1", "2", true), pod("node-2", "2", true), pod("node-9", "2", false)}, 0, 2, 3, false},
		"no pod on the node that is down": {[]client.Object{pod("node-1", "2", true), pod("node-2", "2", true)}, 0, 2, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			ds := &appsv1.DaemonSet{ObjectMeta: here("engine-image-ei-1"), Status: appsv1.DaemonSetStatus{
				ObservedGeneration: 2, DesiredNumberScheduled: 3, UpdatedNumberScheduled: 2, NumberAvailable: 2, NumberMisscheduled: int32(test.misscheduled),
			}}
			ds.Labels, ds.Generation = objects.Longhorn.ManagedLabels, 2
			ds.Annotations = map[string]string{appsv1.DeprecatedTemplateGeneration: "2"}
			ds.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
			got := oneComponent(t, append(append([]client.Object{ds}, up...), test.pods...)...)
			must.True(t, got.Total == test.total && got.Updated == test.updated && got.Ready == test.ready, "got %d of %d, Ready %t", got.Updated, got.Total, got.Ready)
		})
	}
}
