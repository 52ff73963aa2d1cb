package catalog

import "testing"

// spelled is an input and what becomes of it: its normal form, or the phrase
// that refuses it.
type spelled struct{ value, normal, problem string }

// checkSpellings normalizes every input, and every normal form again.
func checkSpellings(t *testing.T, name Name, tests map[string]spelled) {
	t.Helper()
	d, known := Lookup(string(name))
	if !known {
		t.Fatalf("%s is unknown", name)
	}
	for what, test := range tests {
		t.Run(string(name)+": "+what, func(t *testing.T) {
			got, err := d.Normalize(test.value)
			if got != test.normal || errorText(err) != test.problem {
				t.Fatalf("%q: got %q, %q; want %q, %q", test.value, got, errorText(err), test.normal, test.problem)
			}
			if again, err := d.Normalize(got); test.problem == "" && (again != got || err != nil) {
				t.Fatalf("%q became %q and then %q, %v", test.value, got, again, err)
			}
		})
	}
}

// asked is what a value asks of a component; none stands for nothing at all.
type asked struct {
	value     string
	component Component
	want      string
	none      bool
}

func checkWants(t *testing.T, name Name, nodes Nodes, tests map[string]asked) {
	t.Helper()
	d, _ := Lookup(string(name))
	for what, test := range tests {
		t.Run(string(name)+": "+what, func(t *testing.T) {
			got, ok := d.Wants(test.value, test.component, nodes)
			if got != test.want || ok == test.none {
				t.Fatalf("%q of %+v: got %q, %t; want %q, %t", test.value, test.component, got, ok, test.want, !test.none)
			}
		})
	}
}

// Components to ask of.
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
