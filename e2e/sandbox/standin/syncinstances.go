package standin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// wantedState is the state that an engine or replica has once its instance manager runs it.
func wantedState(o *unstructured.Unstructured) string {
	switch {
	case text(o, "spec", "desireState") != stateRunning:
		return stateStopped
	case o.GetKind() == "Replica" && text(o, "spec", "healthyAt") == "":
		return stateStarting // it is being rebuilt
	}
	return stateRunning
}

// instancesOf are the engines and replicas that an instance manager says it runs.
func instancesOf(manager *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, field := range []string{"instanceEngines", "instanceReplicas"} {
		some, _, _ := unstructured.NestedMap(manager.Object, "status", field)
		maps.Copy(all, some)
	}
	return all
}

// syncInstances has every instance manager that runs report the engines and
// replicas that are to run there, and these that they do. Instance managers are
// read first: what is written about one then follows from what came after it.
func (l Longhorn) syncInstances(ctx context.Context) error {
	managers, err := l.list(ctx, "InstanceManager")
	if err != nil {
		return err
	}
	instances, err := l.instances(ctx)
	if err != nil {
		return err
	}
	problems := make([]error, 0, len(managers)+len(instances))
	for i := range managers {
		problems = append(problems, l.reportInstances(ctx, &managers[i], instances))
	}
	if err := errors.Join(problems...); err != nil {
		return err // what an instance says of its manager would not be so
	}
	for i := range instances {
		problems = append(problems, l.syncInstance(ctx, managers, &instances[i]))
	}
	return errors.Join(problems...)
}

func (l Longhorn) reportInstances(ctx context.Context, manager *unstructured.Unstructured, instances []unstructured.Unstructured) error {
	wanted := map[string]map[string]any{"Engine": {}, "Replica": {}}
	for i := range instances {
		o := &instances[i]
		if text(manager, "status", "currentState") != stateRunning || !isOn(manager, o) || wantedState(o) == stateStopped {
			continue
		}
		wanted[o.GetKind()][o.GetName()] = map[string]any{
			"spec":   map[string]any{"name": o.GetName(), "dataEngine": text(o, "spec", "dataEngine")},
			"status": map[string]any{"state": wantedState(o), "type": strings.ToLower(o.GetKind())},
		}
	}
	changed := false
	for kind, entries := range wanted {
		field := "instance" + kind + "s"
		now, _, err := unstructured.NestedMap(manager.Object, "status", field)
		if err == nil && (len(now)+len(entries) == 0 || reflect.DeepEqual(now, entries)) {
			continue
		}
		changed = true
		if err := unstructured.SetNestedMap(manager.Object, entries, "status", field); err != nil {
			return fmt.Errorf("reporting the instances of %s: %w", manager.GetName(), err)
		}
	}
	if !changed {
		return nil
	}
	return l.client.Status().Update(ctx, manager)
}

func isOn(manager, o *unstructured.Unstructured) bool {
	return text(o, "spec", "nodeID") == text(manager, "spec", "nodeID") && text(o, "spec", "dataEngine") == text(manager, "spec", "dataEngine")
}

// syncInstance writes what has become of an engine or replica. When its instance
// manager's pod is lost so is it, until there is another.
func (l Longhorn) syncInstance(ctx context.Context, managers []unstructured.Unstructured, o *unstructured.Unstructured) error {
	state, name := wantedState(o), ""
	if state != stateStopped {
		manager := managerOn(managers, text(o, "spec", "nodeID"), text(o, "spec", "dataEngine"))
		switch was := text(o, "status", "currentState"); {
		case manager != nil && text(manager, "status", "currentState") == stateRunning:
			name = manager.GetName()
		case was == "" || was == stateStopped:
			state = stateStopped
		default:
			state, name = stateError, text(o, "status", "instanceManagerName")
		}
	}
	if text(o, "status", "currentState") == state && text(o, "status", "instanceManagerName") == name {
		return nil
	}
	return l.updateStatus(ctx, o, map[string]any{"currentState": state, "instanceManagerName": name, "started": name != ""})
}
