package settingsapi

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
)

// target is the object that a change goes to.
type target struct {
	schema.GroupVersion
	namespace, name string
	// create it: there is none yet.
	create bool
	// revision that was looked at.
	revision string
}

// targetOf is the setting's home: the storage system's group where that has the
// setting, else Fairlead's own.
func targetOf(s cluster.SettingState, p Profile) target {
	t := target{GroupVersion: v1alpha1.GroupVersion, namespace: p.Namespace, name: string(s.Name)}
	switch {
	case s.System != nil:
		t.GroupVersion, t.revision = longhorn.GroupVersion, s.System.ResourceVersion
	case s.Own != nil:
		t.revision = s.Own.ResourceVersion
	default:
		t.create = true
	}
	return t
}

func (t target) permission() permission {
	p := permission{verb: "patch", group: t.Group, namespace: t.namespace, name: t.name}
	if t.create {
		p.verb, p.name = "create", "" // RBAC knows no names of what does not exist yet
	}
	return p
}

// body of the request to the API server, and its method. Only with a
// precondition does it speak of a revision.
func (t target) request(value string, conditional bool) (method string, body []byte, err error) {
	metadata := map[string]any{}
	object := map[string]any{"metadata": metadata, "value": value}
	method = http.MethodPatch
	if t.create {
		method = http.MethodPost
		metadata["namespace"], metadata["name"] = t.namespace, t.name
		object["apiVersion"], object["kind"] = t.String(), "Setting"
	} else if conditional {
		metadata["resourceVersion"] = t.revision
	}
	body, err = json.Marshal(object)
	return method, body, err
}
