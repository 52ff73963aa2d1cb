package settingsapi

import (
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
)

// target is the object that a change is written to.
type target struct {
	schema.GroupVersion
	namespace, name string
	// create: the object does not exist yet.
	create bool
	// revision is the resource version that the caller has seen.
	revision string
}

// targetOf returns the storage system's object of the setting if there is one, else
// Fairlead's own.
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
		p.verb, p.name = "create", "" // RBAC does not check names of objects to create
	}
	return p
}

// request returns the method and body of the request to the API server. Only a
// conditional request has a resource version.
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
