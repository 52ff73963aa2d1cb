package catalog

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Values of a setting: accepted values with their normal forms, refused values with the detail that follows the form.
type (
	accepted map[string]string
	refused  map[string]string
)

// checkValues normalizes every value, and every normal form again.
func checkValues(t *testing.T, name Name, form string, valid accepted, invalid refused) {
	t.Helper()
	d := lookup(t, name)
	for value, want := range valid {
		normal, err := d.Normalize(value)
		again, errAgain := d.Normalize(normal)
		must.Check(t, normal == want && again == want && err == nil && errAgain == nil,
			"%s %q: got %q, %v, and then %q, %v; want %q", name, value, normal, err, again, errAgain, want)
	}
	for value, detail := range invalid {
		want := form
		if detail != "" {
			want += ": " + detail
		}
		normal, err := d.Normalize(value)
		must.Check(t, normal == "" && err != nil && err.Error() == want, "%s %q: got %q, %v; want error %q", name, value, normal, err, want)
	}
}

// nothing is what a value asks of a component that the setting is not about.
const nothing = "(nothing)"

// wanted is the trait that a value asks of a component.
type wanted struct {
	value     string
	component Component
	want      string
}

func checkWants(t *testing.T, name Name, nodes Nodes, tests []wanted) {
	t.Helper()
	d := lookup(t, name)
	for _, test := range tests {
		got, ok := d.Wants(test.value, test.component, nodes)
		if !ok {
			must.Equal(t, got, "", "%s without a wanted trait", name)
			got = nothing
		}
		must.Equal(t, got, test.want, "%s %q of %+v", name, test.value, test.component)
	}
}

func lookup(t *testing.T, name Name) Definition {
	t.Helper()
	d, known := Lookup(string(name))
	must.True(t, known, "%s is unknown", name)
	return d
}

var (
	managerV1    = Component{Kind: InstanceManager, Name: "instance-manager-1", Node: "node-1", Engine: EngineV1}
	managerV2    = Component{Kind: InstanceManager, Name: "instance-manager-2", Node: "node-1", Engine: EngineV2}
	imageManager = Component{Kind: BackingImageManager, Name: "backing-image-manager-1"}
	shareManager = Component{Kind: ShareManager, Name: "share-manager-pvc-1"}
	attacher     = Component{Kind: Deployment, Name: "csi-attacher"}
	plugin       = Component{Kind: DaemonSetComponent, Name: "longhorn-csi-plugin", Client: true}
	engineImages = Component{Kind: DaemonSetComponent, Name: "engine-image-ei-1"}
	everyKind    = []Component{managerV1, managerV2, imageManager, shareManager, attacher, plugin, engineImages}
)

func on(node string, c Component) Component {
	c.Node = node
	return c
}
