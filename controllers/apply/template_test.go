package apply

import (
	"encoding/json"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must.Do(t, err)
	return string(text)
}

// Source: longhorn-manager controller/setting_controller.go, getFinalTolerations.
func TestTolerationsAreMerged(t *testing.T) {
	const before, now, theirs = `{"key":"before","operator":"Exists","effect":"NoSchedule"}`, `{"key":"now","operator":"Equal","value":"x","effect":"NoExecute"}`, `{"key":"theirs","operator":"Exists"}`
	for name, test := range map[string]struct{ annotation, have, value, want, applied string }{
		"first":                 {"", "", "now=x:NoExecute", "[" + now + "]", "[" + now + "]"},
		"replaced":              {"[" + before + "]", "[" + before + "," + theirs + "]", "now=x:NoExecute", "[" + theirs + "," + now + "]", "[" + now + "]"},
		"added":                 {"[" + before + "]", "[" + before + "]", "before:NoSchedule;now=x:NoExecute", "[" + before + "," + now + "]", "[" + before + "," + now + "]"},
		"removed":               {"[" + before + "]", "[" + before + "," + theirs + "]", "", "[" + theirs + "]", "[]"},
		"of another owner":      {"[]", "[" + now + "]", "now=x:NoExecute", "[" + now + "]", "[" + now + "]"},
		"unreadable annotation": {"[{", "[" + before + "]", "now=x:NoExecute", "[" + before + "," + now + "]", "[" + now + "]"},
		"null annotation":       {"null", "[" + theirs + "]", "now=x:NoExecute", "[" + theirs + "," + now + "]", "[" + now + "]"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, setting(catalog.TaintToleration, test.value))
			change(w, "csi-attacher", func(d *appsv1.Deployment) {
				if test.annotation != "" {
					d.Annotations = map[string]string{names.TolerationsAnnotation: test.annotation}
				}
				if test.have != "" {
					w.Must(json.Unmarshal([]byte(test.have), &d.Spec.Template.Spec.Tolerations))
				}
			})
			w.comeToRest()
			got := w.deployment()
			if have := encoded(t, got.Spec.Template.Spec.Tolerations); have != test.want || got.Annotations[names.TolerationsAnnotation] != test.applied {
				t.Errorf("got  %s, annotation %s\nwant %s, annotation %s", have, got.Annotations[names.TolerationsAnnotation], test.want, test.applied)
			}
			_, there := got.Spec.Template.Annotations[names.TolerationsAnnotation]
			must.Check(t, !there, "the annotation is in the template: it would roll for nothing")
			must.Check(t, w.status(catalog.TaintToleration).Applied, "got %+v", w.status(catalog.TaintToleration))
		})
	}
}

func TestTemplatesAreWrittenAsLonghornWould(t *testing.T) {
	w := newWorld(t, setting(catalog.SystemManagedNodeSelector, "disk:fast;zone:"), setting(class, "high"),
		objects.Setting(catalog.CSIResources, `{"csi-attacher":{"requests":{"cpu":"10m"},"limits":{"memory":"128Mi"}},"longhorn-csi-plugin":{"requests":{"cpu":"20m"}}}`))
	installed := corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	change(w, "csi-attacher", func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = append(d.Spec.Template.Spec.Containers, corev1.Container{Name: "theirs", Resources: installed})
	})
	change(w, names.ClientDaemonSet, func(d *appsv1.DaemonSet) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "node-driver-registrar", Resources: installed}, {Name: "longhorn-csi-plugin"}}
	})
	for range 12 {
		w.step()
		w.others()
	}
	attacher := w.deployment().Spec.Template.Spec
	must.Check(t, reflect.DeepEqual(attacher.NodeSelector, map[string]string{"disk": "fast", "zone": ""}) && attacher.PriorityClassName == "high", "got %+v", attacher)
	must.Equal(t, encoded(t, attacher.Containers[0].Resources), `{"limits":{"memory":"128Mi"},"requests":{"cpu":"10m"}}`, "the attacher's resources")
	must.Equal(t, encoded(t, attacher.Containers[1].Resources), `{"limits":{"cpu":"1"}}`, "resources of an unmanaged container")
	containers := w.daemonSet(longhorn.DefaultNames().ClientDaemonSet).Spec.Template.Spec.Containers
	must.Equal(t, encoded(t, containers[0].Resources)+encoded(t, containers[1].Resources), `{}{"requests":{"cpu":"20m"}}`, "the CSI plugin's resources")
	// One write for all settings.
	must.Equal(t, len(w.Events.About("Updated Deployment/csi-attacher")), 1, "events")
	must.Equal(t, w.daemonSet(engineImage).Spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType, "the engine image's own rolling update is paused")
}

func TestProbesOfTheEngineImage(t *testing.T) {
	values := map[catalog.Trait]string{catalog.ProbePeriod: "7", catalog.ProbeTimeout: "6", catalog.ProbeFailures: "2"}
	var names []catalog.Name
	w := newWorld(t)
	w.step() // creates the settings
	for _, d := range catalog.All() {
		if value, ok := values[d.Trait]; ok {
			names = append(names, d.Name)
			w.set(d.Name, &value)
		}
	}
	w.comeToRest()
	if got := encoded(t, w.daemonSet(engineImage).Spec.Template.Spec.Containers[0].LivenessProbe); len(names) != 3 || got != `{"timeoutSeconds":6,"periodSeconds":7,"failureThreshold":2}` {
		t.Errorf("%v: got %s", names, got)
	}
	must.Equal(t, encoded(t, w.daemonSet(longhorn.DefaultNames().ClientDaemonSet).Spec.Template.Spec.Containers[0].LivenessProbe), `{"timeoutSeconds":4,"periodSeconds":5,"failureThreshold":3}`, "the CSI plugin's")
	for _, name := range names {
		must.Check(t, w.status(name).Applied, "%s: %+v", name, w.status(name))
	}
}

func TestDisabledDataEngineIsRemoved(t *testing.T) {
	w := atRest(t, setting("v1-data-engine", "true"))
	w.setSystem("v1-data-engine", "false")
	for range 6 {
		w.step()
		for _, name := range instanceManagers { // the garbage collector
			if pod := w.pod(name); pod != nil && w.manager(name) == nil {
				w.remove(pod)
			}
		}
	}
	must.Check(t, w.pod("im-node-1") == nil && w.pod("im-node-2") == nil && len(w.Events.About("Removed InstanceManager/")) == 2, "events %q", w.Events.About())
	got := w.status("v1-data-engine")
	must.Check(t, got.Applied, "got %+v", got)
}
