package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// sandboxCondition is all that our stage has more than kwok's.
const sandboxCondition = `      - lastTransitionTime: {{ $now | Quote }}
        status: "True"
        type: PodReadyToStartContainers
`

func TestPodsBecomeReadyAsWithKwokButForOneCondition(t *testing.T) {
	folder, err := module{path: controlplane.KwokModule}.download(t.Context(), "..")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := os.ReadFile(filepath.Join(folder, "kustomize", "stage", "pod", "fast", podReadyFile))
	if err != nil {
		t.Fatal(err)
	}
	_, ours, _ := strings.Cut(string(podReadyStage), "apiVersion:")
	ours = strings.Replace("apiVersion:"+ours, sandboxCondition, "", 1)
	if ours != string(theirs) {
		t.Errorf("without its condition, our stage is\n%s\nkwok's is\n%s", ours, theirs)
	}
}

func TestOneStageTakesThePlaceOfKwoks(t *testing.T) {
	folder := t.TempDir()
	if stages, err := Stages(folder); err == nil {
		t.Errorf("without kwok's stages there are %q", stages)
	}
	if err := os.Mkdir(filepath.Join(folder, stageFolder), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{podReadyFile: "kwok's own", "pod-delete.yaml": "kwok's delete"} {
		if err := os.WriteFile(filepath.Join(folder, stageFolder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stages, err := Stages(folder)
	if err != nil {
		t.Fatal(err)
	}
	for content, want := range map[string]bool{
		"kwok's own": false, "kwok's delete": true, "name: pod-ready\n": true, "name: volumeattachment-attach\n": true,
	} {
		if bytes.Contains(stages, []byte(content)) != want {
			t.Errorf("that %q is in it is %v:\n%s", content, !want, stages)
		}
	}
}
