package mutators

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/settings"
	"github.com/fairlead-io/fairlead/storage"
)

var (
	tolerateA = corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	tolerateB = corev1.Toleration{Key: "b", Operator: corev1.TolerationOpEqual, Value: "c"}
)

const (
	jsonA        = `{"key":"a","operator":"Exists","effect":"NoSchedule"}`
	jsonB        = `{"key":"b","operator":"Equal","value":"c"}`
	jsonNotReady = `{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":300}`
	lastApplied  = `longhorn.io/last-applied-tolerations`
)

// wanting is what is asked of a trait.
func wanting(trait settings.Trait, change func(*ComponentWants)) ComponentWants {
	w := ComponentWants{
		By: map[settings.Trait]settings.Name{trait: "the-setting"}, TolerationsAnnotation: lastApplied, Interface: "lhnet1",
		Classes: []string{"high", "standard"}, DefaultClass: "standard",
	}
	change(&w)
	return w
}

func TestComponent(t *testing.T) {
	tolerations := func(list ...corev1.Toleration) ComponentWants {
		return wanting(settings.Tolerations, func(w *ComponentWants) { w.Tolerations = list })
	}
	selector := func(labels, selector map[string]string) ComponentWants {
		return wanting(settings.NodeSelector, func(w *ComponentWants) { w.NodeLabels, w.NodeSelector = labels, selector })
	}
	class := func(name string) ComponentWants {
		return wanting(settings.PriorityClassName, func(w *ComponentWants) { w.PriorityClass = name })
	}
	cpu := func(text string) ComponentWants {
		return wanting(settings.CPURequest, func(w *ComponentWants) { w.CPU = resource.MustParse(text) })
	}
	network := func(a storage.Attachment) ComponentWants {
		return wanting(settings.StorageAttachment, func(w *ComponentWants) { w.Network = a })
	}
	changed := func(patch string) ruling { return ruling{Mutated, ReasonSettings, "the-setting", patch} }
	asItIs := ruling{Unchanged, ReasonAsItShouldBe, "", ""}
	noAnnotation := `{"op":"add","path":"/metadata/annotations","value":{"longhorn.io/last-applied-tolerations":%s}}`
	annotation := `{"op":"add","path":"/metadata/annotations/longhorn.io~1last-applied-tolerations","value":%s}`
	applied := func(text string) string {
		return fmt.Sprintf(`{"metadata":{"annotations":{"longhorn.io/last-applied-tolerations":%q}},"spec":{"tolerations":%%s}}`, text)
	}
	container := `{"spec":{"containers":[{"name":"x","resources":%s},{"name":"y"}]}}`
	for name, test := range map[string]struct {
		pod   string
		wants ComponentWants
		want  ruling
	}{
		"no setting": {`{}`, ComponentWants{}, ruling{Unchanged, ReasonNoSetting, "", ""}},

		"tolerations, none yet": {`{"metadata":{},"spec":{}}`, tolerations(tolerateA, tolerateB), changed(
			"[" + fmt.Sprintf(noAnnotation, quoted("["+jsonA+","+jsonB+"]")) + `,{"op":"add","path":"/spec/tolerations","value":[` + jsonA + "," + jsonB + "]}]")},
		"tolerations, as they are, in another order": {fmt.Sprintf(applied("["+jsonB+","+jsonA+"]"), "["+jsonA+","+jsonNotReady+","+jsonB+"]"), tolerations(tolerateA, tolerateB), asItIs},
		"tolerations, one by its default operator": {
			fmt.Sprintf(applied("["+jsonB+"]"), `[{"key":"b","value":"c"}]`), tolerations(tolerateB), asItIs,
		},
		"tolerations, one instead of another, those of others stay": {
			fmt.Sprintf(applied("["+jsonA+"]"), "["+jsonA+","+jsonNotReady+"]"), tolerations(tolerateB),
			changed("[" + fmt.Sprintf(annotation, quoted("["+jsonB+"]")) + `,{"op":"add","path":"/spec/tolerations","value":[` + jsonNotReady + "," + jsonB + "]}]"),
		},
		"tolerations, none any more": {
			fmt.Sprintf(applied("["+jsonA+"]"), "["+jsonA+"]"), tolerations(),
			changed("[" + fmt.Sprintf(annotation, quoted("[]")) + `,{"op":"remove","path":"/spec/tolerations"}]`),
		},
		"tolerations, none and none": {`{"spec":{"tolerations":[` + jsonNotReady + `]}}`, tolerations(), asItIs},
		"tolerations, somebody has added the wanted one": {
			`{"spec":{"tolerations":[` + jsonA + `]}}`, tolerations(tolerateA), changed("[" + fmt.Sprintf(noAnnotation, quoted("["+jsonA+"]")) + "]"),
		},
		"tolerations, the list says so and they are not there": {
			fmt.Sprintf(applied("["+jsonA+"]"), "[]"), tolerations(tolerateA), changed(`[{"op":"add","path":"/spec/tolerations","value":[` + jsonA + `]}]`),
		},
		"tolerations, a list that can't be read": {
			fmt.Sprintf(applied("[{"), "["+jsonB+"]"), tolerations(tolerateA),
			changed("[" + fmt.Sprintf(annotation, quoted("["+jsonA+"]")) + `,{"op":"add","path":"/spec/tolerations","value":[` + jsonB + "," + jsonA + "]}]"),
		},

		"node selector": {`{"spec":{"nodeSelector":{"x":"y"}}}`, selector(nil, map[string]string{"a": "b"}), changed(`[{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}]`)},
		"node selector, none any more": {
			`{"spec":{"nodeSelector":{"x":"y"}}}`, selector(nil, nil), changed(`[{"op":"remove","path":"/spec/nodeSelector"}]`),
		},
		"node selector, as it is":            {`{"spec":{"nodeSelector":{"a":"b"}}}`, selector(nil, map[string]string{"a": "b"}), asItIs},
		"node selector, none and none":       {`{"spec":{}}`, selector(nil, nil), asItIs},
		"node selector, the node is like it": {`{"spec":{}}`, selector(map[string]string{"a": "b", "c": "d"}, map[string]string{"a": "b"}), changed(`[{"op":"add","path":"/spec/nodeSelector","value":{"a":"b"}}]`)},
		"node selector, the node is not": {
			`{"spec":{"nodeName":"node-1"}}`, selector(map[string]string{"a": "x"}, map[string]string{"a": "b"}),
			ruling{Skipped, ReasonNodeLacksLabels, `node node-1 has not all labels of "a:b", which the-setting asks for: label it, or the pod would end at once`, ""},
		},

		"priority class": {
			`{"spec":{"priorityClassName":"standard","priority":5,"preemptionPolicy":"PreemptLowerPriority"}}`, class("high"),
			changed(`[{"op":"add","path":"/spec/priorityClassName","value":"high"},{"op":"remove","path":"/spec/priority"},{"op":"remove","path":"/spec/preemptionPolicy"}]`),
		},
		"priority class, none yet":         {`{"spec":{"priority":0}}`, class("high"), changed(`[{"op":"add","path":"/spec/priorityClassName","value":"high"},{"op":"remove","path":"/spec/priority"}]`)},
		"priority class, as it is":         {`{"spec":{"priorityClassName":"high","priority":7}}`, class("high"), asItIs},
		"priority class, none is default":  {`{"spec":{"priorityClassName":"standard","priority":5}}`, class(""), asItIs},
		"priority class, none any more":    {`{"spec":{"priorityClassName":"high","priority":7}}`, class(""), changed(`[{"op":"remove","path":"/spec/priorityClassName"},{"op":"remove","path":"/spec/priority"}]`)},
		"priority class that is not there": {`{"spec":{}}`, class("gone"), ruling{Skipped, ReasonNoSuchClass, `the-setting says "gone": create that PriorityClass, or the pod would be refused`, ""}},

		"CPU":                   {fmt.Sprintf(container, `{"requests":{"memory":"1Mi","cpu":"1"}}`), cpu("1250m"), changed(`[{"op":"add","path":"/spec/containers/0/resources/requests/cpu","value":"1250m"}]`)},
		"CPU, requests none":    {fmt.Sprintf(container, `{}`), cpu("1250m"), changed(`[{"op":"add","path":"/spec/containers/0/resources/requests","value":{"cpu":"1250m"}}]`)},
		"CPU, no resources":     {fmt.Sprintf(container, `null`), cpu("1250m"), changed(`[{"op":"add","path":"/spec/containers/0/resources","value":{"requests":{"cpu":"1250m"}}}]`)},
		"CPU, as it is":         {fmt.Sprintf(container, `{"requests":{"cpu":"1.25"}}`), cpu("1250m"), asItIs},
		"CPU, none any more":    {fmt.Sprintf(container, `{"requests":{"cpu":"1"}}`), cpu("0m"), changed(`[{"op":"remove","path":"/spec/containers/0/resources/requests/cpu"}]`)},
		"CPU, none and none":    {fmt.Sprintf(container, `{}`), cpu("0m"), asItIs},
		"CPU, no container":     {`{"spec":{}}`, cpu("1"), asItIs},
		"CPU, over the limit":   {fmt.Sprintf(container, `{"limits":{"cpu":"1"}}`), cpu("1250m"), ruling{Skipped, ReasonCPULimit, "the-setting asks for 1250m, and the container is limited to 1", ""}},
		"CPU, none but limited": {fmt.Sprintf(container, `{"requests":{"cpu":"1"},"limits":{"cpu":"1"}}`), cpu("0m"), ruling{Skipped, ReasonCPULimit, "the-setting asks for 0, and the container is limited to 1", ""}},
		"CPU, none beside huge pages": {
			fmt.Sprintf(container, `{"requests":{"cpu":"1"},"limits":{"hugepages-2Mi":"2Gi"}}`), cpu("0m"),
			ruling{Skipped, ReasonCPULimit, "the-setting asks for none, and a container with huge pages needs a request of CPU or memory", ""},
		},
		"CPU, none beside huge pages and memory": {
			fmt.Sprintf(container, `{"requests":{"cpu":"1","memory":"128Mi"},"limits":{"hugepages-2Mi":"2Gi"}}`), cpu("0m"),
			changed(`[{"op":"remove","path":"/spec/containers/0/resources/requests/cpu"}]`),
		},

		"storage network": {`{"metadata":{}}`, network(storageNet), changed(newAnnotations)},
		"storage network, as it is": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@net1,kube-system/storage-net@lhnet1"}}}`, network(storageNet), asItIs,
		},
		"storage network instead of another, those of others stay": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"x@net1,kube-system/old@lhnet1"}}}`, network(storageNet),
			changed(addAnnotation + `x@net1,kube-system/storage-net@lhnet1"}]`),
		},
		"storage network, none any more": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"kube-system/old@lhnet1"}}}`, network(storage.Attachment{}),
			changed(`[{"op":"remove","path":"/metadata/annotations/k8s.v1.cni.cncf.io~1networks"}]`),
		},
		"storage network, on the host network": {
			`{"spec":{"hostNetwork":true}}`, network(storageNet),
			ruling{Skipped, ReasonHostNetwork, "Multus adds no interface to pods on the host network; set hostNetwork to false for the-setting", ""},
		},
		"storage network, unreadable": {
			`{"metadata":{"annotations":{"k8s.v1.cni.cncf.io/networks":"[{"}}}`, network(storageNet),
			ruling{Skipped, ReasonUnreadable, "annotation k8s.v1.cni.cncf.io/networks: not a network selection that Multus understands: unexpected end of JSON input", ""},
		},

		"opted out": {
			`{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}`, class("high"),
			ruling{Skipped, ReasonOptOut, "annotation fairlead.io/opt-out keeps the pod from the-setting", ""},
		},
		"opted out of what can't be": {`{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}`, class("gone"), ruling{Unchanged, ReasonOptOut, "", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateComponent(view[ComponentPod](t, test.pod), "longhorn-system", test.wants))
		})
	}
}

func quoted(text string) string { return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"` }

// What can't be done keeps nothing else from being done.
func TestComponentTellsWhatItLeaves(t *testing.T) {
	wants := wanting(settings.PriorityClassName, func(w *ComponentWants) {
		w.PriorityClass, w.Tolerations, w.Network = "gone", []corev1.Toleration{tolerateA}, storageNet
		w.By[settings.Tolerations], w.By[settings.StorageAttachment] = "taint-toleration", "storage-network"
	})
	got := MutateComponent(view[ComponentPod](t, `{"metadata":{},"spec":{}}`), "longhorn-system", wants)
	if got.Outcome != Mutated || got.Detail != "taint-toleration, storage-network" || len(got.Patch) != 3 {
		t.Errorf("got %+v", got)
	}
	if len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], ReasonNoSuchClass) {
		t.Errorf("warnings %q", got.Warnings)
	}
}

// Both halves may have annotations to write, and the pod none yet.
func TestShareManagerPodHasBothInOnePatch(t *testing.T) {
	wants := wanting(settings.Tolerations, func(w *ComponentWants) { w.Tolerations = []corev1.Toleration{tolerateA} })
	record := settings.Record{Clients: storageNet, Servers: storageNet}
	for name, test := range map[string]struct {
		pod   string
		wants ComponentWants
		want  ruling
	}{
		"both": {`{"metadata":{}}`, wants, ruling{
			Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of servers says so, and the volume has no Service yet; the-setting",
			strings.TrimSuffix(newAnnotations, "]") + `,{"op":"add","path":"/metadata/annotations/longhorn.io~1last-applied-tolerations","value":` + quoted("["+jsonA+"]") +
				`},{"op":"add","path":"/spec/tolerations","value":[` + jsonA + `]}]`,
		}},
		"no setting": {`{"metadata":{}}`, ComponentWants{}, ruling{
			Mutated, ReasonNetworkAdded, "kube-system/storage-net@lhnet1: the record of servers says so, and the volume has no Service yet", newAnnotations,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.check(t, MutateShareManagerPod(view[ComponentPod](t, test.pod), inLonghorn, nil, record, test.wants))
		})
	}
	onHost := MutateShareManagerPod(view[ComponentPod](t, `{"spec":{"hostNetwork":true}}`), inLonghorn, nil, record, wants)
	if onHost.Outcome != Mutated || len(onHost.Patch) != 2 || len(onHost.Warnings) != 1 {
		t.Errorf("one half can't be done: got %+v", onHost)
	}
	optedOut := MutateShareManagerPod(view[ComponentPod](t, `{"metadata":{"annotations":{"fairlead.io/opt-out":"true"}}}`), inLonghorn, nil, record, wants)
	if optedOut.Outcome != Skipped || len(optedOut.Warnings) != 1 {
		t.Errorf("opted out of both: got %+v", optedOut)
	}
}

func TestComponentPatchesAreMinimalAndIdempotent(t *testing.T) {
	touched := [][]string{
		{"metadata", "annotations", storage.NetworksAnnotation}, {"metadata", "annotations", lastApplied},
		{"spec", "tolerations"}, {"spec", "nodeSelector"}, {"spec", "priorityClassName"}, {"spec", "priority"}, {"spec", "preemptionPolicy"},
		{"spec", "containers", "0", "resources", "requests", "cpu"},
	}
	rapid.Check(t, func(t *rapid.T) {
		// What can't be done is told each time; it is left out here.
		pod := genPod(t)
		spec := pod["spec"].(map[string]any)
		delete(spec, "hostNetwork")
		meta := pod["metadata"].(map[string]any)
		if annotations, ok := meta["annotations"].(map[string]any); ok {
			if text, _ := annotations[storage.NetworksAnnotation].(string); text == "[" || text == "X" {
				delete(annotations, storage.NetworksAnnotation)
			}
			if rapid.Bool().Draw(t, "list") {
				annotations[lastApplied] = rapid.SampledFrom([]string{"", "null", "[]", "[{", "[" + jsonA + "]", "[" + jsonB + "," + jsonA + "]"}).Draw(t, lastApplied)
			}
		}
		for _, field := range []struct {
			key    string
			values []string
		}{
			{"tolerations", []string{"null", "[]", "[" + jsonA + "]", "[" + jsonNotReady + "," + jsonB + "," + jsonA + "]"}},
			{"nodeSelector", []string{"null", "{}", `{"a":"b"}`, `{"c":"d","a":"x"}`}},
			{"priorityClassName", []string{`""`, `"standard"`, `"high"`}},
			{"priority", []string{"null", "0", "7"}},
			{"preemptionPolicy", []string{"null", `"Never"`}},
		} {
			if rapid.Bool().Draw(t, field.key) {
				spec[field.key] = view[any](t, rapid.SampledFrom(field.values).Draw(t, field.key))
			}
		}
		spec["containers"].([]any)[0].(map[string]any)["resources"] = view[any](t, rapid.SampledFrom([]string{
			"{}", `{"requests":{}}`, `{"requests":{"cpu":"1"}}`, `{"requests":{"cpu":"1","memory":"1Mi"},"limits":{"memory":"1Gi"}}`,
		}).Draw(t, "resources"))

		wants := wanting(settings.Tolerations, func(w *ComponentWants) {
			w.Tolerations = rapid.SampledFrom([][]corev1.Toleration{nil, {tolerateA}, {tolerateB, tolerateA}}).Draw(t, "tolerate")
			w.NodeSelector = rapid.SampledFrom([]map[string]string{nil, {"a": "b"}}).Draw(t, "select")
			w.PriorityClass = rapid.SampledFrom([]string{"", "high", "standard"}).Draw(t, "class")
			w.CPU = resource.MustParse(rapid.SampledFrom([]string{"0m", "1250m"}).Draw(t, "cpu"))
			w.Network = rapid.SampledFrom([]storage.Attachment{{}, storageNet}).Draw(t, "network")
			for _, trait := range []settings.Trait{settings.NodeSelector, settings.PriorityClassName, settings.CPURequest, settings.StorageAttachment} {
				if rapid.Bool().Draw(t, string(trait)) {
					w.By[trait] = settings.Name(trait)
				}
			}
		})
		checkMinimal(t, pod, func(p ComponentPod) Result { return MutateComponent(p, "longhorn-system", wants) }, touched...)
	})
}
