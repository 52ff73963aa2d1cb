package apply

import (
	"encoding/json"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Source: longhorn-manager controller/setting_controller.go, getFinalTolerations:
// those of the last time go, those of now come, those of others stay.
func TestTolerationsAreMerged(t *testing.T) {
	const ofBefore, ofNow, theirs = `{"key":"before","operator":"Exists","effect":"NoSchedule"}`, `{"key":"now","operator":"Equal","value":"x","effect":"NoExecute"}`, `{"key":"theirs","operator":"Exists"}`
	for name, test := range map[string]struct{ annotation, have, value, want, applied string }{
		"none was there":                     {"", "", "now=x:NoExecute", "[" + ofNow + "]", "[" + ofNow + "]"},
		"instead of those of before":         {"[" + ofBefore + "]", "[" + ofBefore + "," + theirs + "]", "now=x:NoExecute", "[" + theirs + "," + ofNow + "]", "[" + ofNow + "]"},
		"beside those of before":             {"[" + ofBefore + "]", "[" + ofBefore + "]", "before:NoSchedule;now=x:NoExecute", "[" + ofBefore + "," + ofNow + "]", "[" + ofBefore + "," + ofNow + "]"},
		"none any more":                      {"[" + ofBefore + "]", "[" + ofBefore + "," + theirs + "]", "", "[" + theirs + "]", "[]"},
		"a toleration of another owner":      {"[]", "[" + ofNow + "]", "now=x:NoExecute", "[" + ofNow + "]", "[" + ofNow + "]"},
		"an unreadable record of before":     {"[{", "[" + ofBefore + "]", "now=x:NoExecute", "[" + ofBefore + "," + ofNow + "]", "[" + ofNow + "]"},
		"of before there were none, as null": {"null", "[" + theirs + "]", "now=x:NoExecute", "[" + theirs + "," + ofNow + "]", "[" + ofNow + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			d := attacher()
			if test.annotation != "" {
				d.Annotations = map[string]string{profile.TolerationsAnnotation: test.annotation}
			}
			if test.have != "" {
				if err := json.Unmarshal([]byte(test.have), &d.Spec.Template.Spec.Tolerations); err != nil {
					t.Fatal(err)
				}
			}
			w := newWorld(t, setting(catalog.TaintToleration, test.value))
			w.Must(w.API.Delete(t.Context(), w.deployment()))
			w.Must(w.API.Create(t.Context(), d))
			if test.value == "" { // in force once another was
				w.comeToRest()
			}
			w.comeToRest()
			got := w.deployment()
			if have := encoded(t, got.Spec.Template.Spec.Tolerations); have != test.want || got.Annotations[profile.TolerationsAnnotation] != test.applied {
				t.Errorf("got  %s, annotation %s\nwant %s, annotation %s", have, got.Annotations[profile.TolerationsAnnotation], test.want, test.applied)
			}
			if _, there := got.Spec.Template.Annotations[profile.TolerationsAnnotation]; there {
				t.Error("the annotation is in the template: it would roll for nothing")
			}
			if !w.status(catalog.TaintToleration).Applied {
				t.Errorf("got %+v", w.status(catalog.TaintToleration))
			}
		})
	}
}

func TestTemplatesAreWrittenAsLonghornWould(t *testing.T) {
	w := newWorld(t, setting(catalog.SystemManagedNodeSelector, "disk:fast;zone:"), setting(class, "high"),
		ownSetting(catalog.CSIResources, `{"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}},"longhorn-csi-plugin":{"requests":{"cpu":"20m"}}}`))
	d := w.deployment()
	d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "theirs", Resources: corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}})
	w.Must(w.API.Update(t.Context(), d))
	plugin := w.daemonSet(profile.ClientDaemonSet)
	plugin.Spec.Template.Spec.Containers = []corev1.Container{{Name: "node-driver-registrar", Resources: d.Spec.Template.Spec.Containers[1].Resources}, {Name: "longhorn-csi-plugin"}}
	w.Must(w.API.Update(t.Context(), plugin))
	for range 12 {
		w.step()
		w.others()
	}
	attacher := w.deployment().Spec.Template.Spec
	if !reflect.DeepEqual(attacher.NodeSelector, map[string]string{"disk": "fast", "zone": ""}) || attacher.PriorityClassName != "high" {
		t.Errorf("got %+v", attacher)
	}
	if got := encoded(t, attacher.Containers[0].Resources); got != `{"limits":{"memory":"128Mi"},"requests":{"cpu":"10m"}}` {
		t.Errorf("the attacher's resources: %s", got)
	}
	if got := encoded(t, attacher.Containers[1].Resources); got != `{"limits":{"cpu":"1"}}` {
		t.Errorf("resources of an unmanaged container: %s", got)
	}
	containers := w.daemonSet(profile.ClientDaemonSet).Spec.Template.Spec.Containers
	if got := encoded(t, containers[0].Resources) + encoded(t, containers[1].Resources); got != `{}{"requests":{"cpu":"20m"}}` {
		t.Errorf("the CSI plugin's resources: %s", got)
	}
	// One write for all settings.
	if got := w.Events.About("Updated Deployment/csi-attacher"); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	if w.daemonSet("engine-image-ei-1").Spec.UpdateStrategy.Type != appsv1.RollingUpdateDaemonSetStrategyType {
		t.Error("the engine image's own rolling update is paused")
	}
}

func TestProbesOfTheEngineImage(t *testing.T) {
	names := map[catalog.Name]string{}
	for _, d := range catalog.All() {
		switch d.Trait {
		case catalog.ProbePeriod:
			names[d.Name] = "7"
		case catalog.ProbeTimeout:
			names[d.Name] = "6"
		case catalog.ProbeFailures:
			names[d.Name] = "2"
		}
	}
	var objects []client.Object
	for name, value := range names {
		objects = append(objects, ownSetting(name, value))
	}
	w := newWorld(t, objects...)
	w.comeToRest()
	if got := encoded(t, w.daemonSet("engine-image-ei-1").Spec.Template.Spec.Containers[0].LivenessProbe); len(names) != 3 || got != `{"timeoutSeconds":6,"periodSeconds":7,"failureThreshold":2}` {
		t.Errorf("%v: got %s", names, got)
	}
	if got := encoded(t, w.daemonSet(profile.ClientDaemonSet).Spec.Template.Spec.Containers[0].LivenessProbe); got != `{"timeoutSeconds":4,"periodSeconds":5,"failureThreshold":3}` {
		t.Errorf("the CSI plugin's: %s", got)
	}
	for name := range names {
		if !w.status(name).Applied {
			t.Errorf("%s: %+v", name, w.status(name))
		}
	}
}

func TestDisabledDataEngineIsRemoved(t *testing.T) {
	w := newWorld(t, setting("v1-data-engine", "true"))
	w.comeToRest()
	w.setSystem("v1-data-engine", "false")
	for range 6 {
		w.step()
		for _, name := range []string{"im-node-1", "im-node-2"} { // the garbage collector
			if pod := w.pod(name); pod != nil && w.manager(name) == nil {
				w.Must(w.API.Delete(t.Context(), pod, client.Preconditions{UID: &pod.UID}))
			}
		}
	}
	if w.pod("im-node-1") != nil || w.pod("im-node-2") != nil || len(w.Events.About("Removed InstanceManager/")) != 2 {
		t.Errorf("events %q", w.Events.About())
	}
	if got := w.status("v1-data-engine"); !got.Applied {
		t.Errorf("got %+v", got)
	}
}
