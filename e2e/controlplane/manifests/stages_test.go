package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// additions are all that our stages have more than kwok's.
var additions = map[string]string{
	"pod-ready.yaml": `      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: PodReadyToStartContainers
`,
	"pod-delete.yaml": `    - key: '.metadata.deletionGracePeriodSeconds | tostring'
      operator: 'NotIn'
      values:
      - '0'
`,
}

func TestStagesExtendKwokStages(t *testing.T) {
	folder, err := module{path: controlplane.KwokModule}.download(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	for name, addition := range additions {
		t.Run(name, func(t *testing.T) {
			theirs, err := os.ReadFile(filepath.Join(folder, "kustomize", "stage", "pod", "fast", name))
			if err != nil {
				t.Fatal(err)
			}
			content, err := replacements.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, ours, _ := strings.Cut(string(content), "apiVersion:")
			ours = strings.Replace("apiVersion:"+ours, addition, "", 1)
			if ours != string(theirs) {
				t.Errorf("without the addition, our stage is\n%s\nkwok's is\n%s", ours, theirs)
			}
		})
	}
}

func TestStagesReplaceKwokStages(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, stageFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, stageFolder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("pod-ready.yaml", "kwok's own")
	write("pod-complete.yaml", "kwok's complete")
	if stages, err := Stages(folder, true); err == nil {
		t.Errorf("without kwok's pod-delete there are\n%s", stages)
	}
	write("pod-delete.yaml", "kwok's own")
	stages, err := Stages(folder, true)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]bool{
		"kwok's own": false, "kwok's complete": true,
		"name: pod-ready\n": true, "name: pod-delete\n": true, "name: volumeattachment-attach\n": true,
	} {
		if bytes.Contains(stages, []byte(content)) != want {
			t.Errorf("that %q is in it is %v:\n%s", content, !want, stages)
		}
	}
	if stages, err = Stages(folder, false); err != nil || bytes.Contains(stages, []byte("volumeattachment-attach")) {
		t.Errorf("without a stand-in for attachers there are (%v)\n%s", err, stages)
	}
}
