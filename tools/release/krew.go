package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/blang/semver/v4"
	"sigs.k8s.io/yaml"
)

const (
	krewManifestName = "fairlead.krew.yaml"
	homepage         = "https://github.com/fairlead-io/fairlead"
)

// krewPlugin is Krew's manifest of a plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
// Krew's own type would bring Kubernetes' libraries along, and writes an empty creationTimestamp.
type krewPlugin struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Metadata   krewMetadata `json:"metadata"`
	Spec       krewSpec     `json:"spec"`
}

type krewMetadata struct {
	Name string `json:"name"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Caveats          string         `json:"caveats"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
	Files    []krewFile   `json:"files"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

type krewFile struct {
	From string `json:"from"`
	To   string `json:"to"`
}

const (
	krewDescription = `Shows what Fairlead and Longhorn do with volumes and their networks: which settings
are in effect, what waits and for what, the data path of each RWX volume, lost nodes,
and NFS servers.

  kubectl fairlead status
  kubectl fairlead volumes
  kubectl fairlead settings
`
	krewCaveats = `This plugin reads a cluster in which Fairlead is installed:
` + homepage + `/blob/main/docs/install.md
`
)

// writeKrewManifest says where a release's archives are downloaded, and their checksums.
func (r *release) writeKrewManifest(sums map[platform]string) error {
	if !isSemantic(r.version) {
		fmt.Printf("Krew does not take the version %s: it must be a v and a semantic version (semver.org)\n", r.version)
	}
	plugin := krewPlugin{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: krewMetadata{Name: "fairlead"},
		Spec: krewSpec{
			Version: r.version, Homepage: homepage, Description: krewDescription, Caveats: krewCaveats,
			ShortDescription: "Show volumes, their networks, and settings that wait",
		},
	}
	for _, p := range platforms {
		plugin.Spec.Platforms = append(plugin.Spec.Platforms, krewPlatform{
			Selector: krewSelector{MatchLabels: map[string]string{"os": p.os, "arch": p.architecture}},
			URI:      homepage + "/releases/download/" + r.version + "/" + p.archive(),
			SHA256:   sums[p], Bin: p.program(),
			Files: []krewFile{{From: p.program(), To: "."}, {From: "LICENSE", To: "."}},
		})
	}
	content, err := yaml.Marshal(plugin)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, krewManifestName), content, 0o644)
}

func isSemantic(version string) bool {
	number, found := strings.CutPrefix(version, "v")
	if !found {
		return false
	}
	_, err := semver.Parse(number)
	return err == nil
}
