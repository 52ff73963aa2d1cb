package test

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
)

func commonValues(text string) (common.Values, error) { return common.ReadValues([]byte(text)) }

func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ values, namespace, want string }{
		"other namespace":         {"", "default", "Fairlead runs in namespace fairlead-system"},
		"nothing":                 {"{longhorn: {enabled: false}}", namespace, "nothing to install"},
		"no controller for CA":    {"{longhorn: {enabled: false}, nfs: {enabled: true}, tls: {source: selfSigned}}", namespace, "needs the controller"},
		"Ceph without fencing":    {"{fencing: {cephClients: {enabled: true}}}", namespace, "needs fencing.enabled"},
		"unknown value":           {"{fencing: {enable: true}}", namespace, "'enable' not allowed"},
		"misspelt configuration":  {"{configuration: {longhorn: {networks: {gaet: node}}}}", namespace, "'gaet' not allowed"},
		"configuration is a text": {"{configuration: {longhorn: {workloads: {maxPercent: all}}}}", namespace, "/configuration/longhorn/workloads/maxPercent"},
		"unknown source of TLS":   {"{tls: {source: vault}}", namespace, "certManager"},
		"digest without sha256":   {"{image: {digest: 0123}}", namespace, "/image/digest"},
		"text in place of number": {"{webhook: {replicas: two}}", namespace, "/webhook/replicas"},
		"Longhorn's section without Longhorn": {
			"{longhorn: {enabled: false}, fencing: {enabled: true}, configuration: {longhorn: {}}}", namespace,
			"configuration.longhorn needs longhorn.enabled",
		},
		"two namespaces of Longhorn": {
			"{longhorn: {namespace: other}, configuration: {longhorn: {namespace: third}}}", namespace,
			"configuration.longhorn.namespace is third, and longhorn.namespace is other: set longhorn.namespace",
		},
		"namespace of Longhorn in the configuration alone": {
			"{configuration: {longhorn: {namespace: other}}}", namespace, "longhorn.namespace is longhorn-system: set longhorn.namespace",
		},
		"two namespaces of Rook": {
			"{fencing: {enabled: true, namespace: my-rook}, configuration: {fencing: {profiles: [{name: rook-ceph, namespace: other}]}}}", namespace,
			"configuration.fencing.profiles is other, and fencing.namespace is my-rook: set both",
		},
		"namespace of Rook in the values alone": {
			"{fencing: {enabled: true, namespace: my-rook}, configuration: {fencing: {profiles: [{name: rook-ceph}]}}}", namespace,
			"configuration.fencing.profiles is rook-ceph, and fencing.namespace is my-rook: set both",
		},
		"former scheduling gates": {"{fencing: {enabled: true, gates: true}}", namespace, "remove fencing.gates: "},
		"former profiles": {
			"{configuration: {profiles: [{name: longhorn, duties: {remount: 'on'}}]}}", namespace,
			"move configuration.profiles to configuration.longhorn:\nconfiguration:\n  longhorn:\n    duties:\n      remount: \"on\"",
		},
		"former profiles with nothing to move": {"{configuration: {profiles: [{name: longhorn}]}}", namespace, "remove configuration.profiles: "},
		"all former fields": {
			"{configuration: {profiles: [{name: longhorn}], networks: {gate: node}, maintenanceWindows: [{start: '01:00', length: 4h}], workloads: {maxPercent: 50}}}",
			namespace, "move configuration.profiles, configuration.networks, configuration.maintenanceWindows, configuration.workloads to configuration.longhorn:\n",
		},
		"relative kubelet folder": {"{nfs: {node: {kubeletDir: kubelet}}}", namespace, "/nfs/node/kubeletDir"},
	} {
		if _, err := renderChart(c.values, c.namespace); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, want one with %q", name, err, c.want)
		}
	}
}

func TestValuesReachTheManifests(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for values, want := range map[string]string{
		"{image: {repository: r.example/f, tag: v9}}":                  "image: r.example/f:v9\n",
		"{image: {repository: r.example/f, digest: '" + digest + "'}}": "image: r.example/f@" + digest + "\n",
		"{imagePullSecrets: [{name: mine}]}":                           "imagePullSecrets:\n        - name: mine\n",
		"{webhook: {replicas: 5}}":                                     "replicas: 5\n",
		"{webhook: {extraArgs: [--client-ca-file=/x]}}":                "- --client-ca-file=/x\n",
		"{controller: {podAnnotations: {a: b}}}":                       "        a: b\n",
		"{controller: {nodeSelector: {a: b}}}":                         "nodeSelector:\n        a: b\n",
		"{controller: {priorityClassName: mine}}":                      "priorityClassName: mine\n",
		"{webhook: {affinity: {nodeAffinity: {}}}}":                    "affinity:\n        nodeAffinity: {}\n",
		"{configuration: {longhorn: {networks: {gate: node}, maintenanceWindows: [{days: [Sat], start: '01:00', length: 4h, timeZone: UTC}]}}}": "gate: node\n",
		"{longhorn: {namespace: other}, configuration: {longhorn: {namespace: other}}}":                                                         "longhorn:\n      namespace: other\n",
		"{fencing: {enabled: true, namespace: my-rook}, configuration: {fencing: {profiles: [{name: rook-ceph, namespace: my-rook}]}}}":         "namespace: my-rook\n",
		"{longhorn: {namespace: other}}":                                          "namespace: other\n",
		"{nfs: {enabled: true, node: {kubeletDir: /var/lib/k0s/kubelet}}}":        "- --kubelet-dir=/var/lib/k0s/kubelet\n",
		"{nfs: {enabled: true, namespaces: [team-a]}}":                            "name: fairlead-csi-publisher\n  namespace: team-a\n",
		"{fencing: {enabled: true, namespace: my-rook}}":                          "name: rook-ceph\n        namespace: my-rook\n",
		"{fencing: {enabled: true, cephClients: {enabled: true, image: ceph:1}}}": "image: ceph:1\n",
	} {
		files, err := renderChart(values, namespace)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, text := range files {
			found = found || strings.Contains(text, want)
			if strings.Contains(values, "namespace: other") && strings.Contains(text, "longhorn-system") {
				t.Errorf("with %s, longhorn-system is still named", values)
			}
		}
		if !found {
			t.Errorf("with %s, nothing has %q", values, want)
		}
	}
}

func TestNotesSayTheNextCommand(t *testing.T) {
	for name, v := range variants {
		files, err := renderChart(v.values, namespace)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["fairlead/templates/NOTES.txt"]
		if !strings.Contains(notes, "rollout status") || strings.Contains(v.values, "nfs") != strings.Contains(notes, "fairlead nfs") {
			t.Errorf("the notes of %s are\n%s", name, notes)
		}
	}
}
