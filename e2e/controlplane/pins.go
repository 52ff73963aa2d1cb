// Package controlplane knows which versions the control plane is made of.
//
// go.mod is the one place where they are pinned: it is embedded here, so that
// what is reported, what names the cache and what is built can't disagree.
package controlplane

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
)

// ModulePath is this module's path, by which its source folder is recognised.
const ModulePath = "github.com/fairlead-io/fairlead/e2e/controlplane"

//go:embed go.mod
var moduleFiles embed.FS

// mains holds the sources that end up in the built binaries: a change to them
// must lead to a new cache folder just as a change of version does.
//
//go:embed cmd/cert-manager cmd/etcd cmd/kube-apiserver cmd/kube-controller-manager cmd/kube-scheduler cmd/kubectl
var mains embed.FS

// Versions are the pinned versions, all in the form v1.2.3.
type Versions struct {
	Kubernetes                  string `json:"kubernetes"`
	Etcd                        string `json:"etcd"`
	Kwok                        string `json:"kwok"`
	CertManager                 string `json:"certManager"`
	NetworkAttachmentDefinition string `json:"networkAttachmentDefinition"`
}

// PinnedVersions reads the versions from go.mod.
func PinnedVersions() (Versions, error) {
	content, err := moduleFiles.ReadFile("go.mod")
	if err != nil {
		return Versions{}, fmt.Errorf("reading the embedded go.mod: %w", err)
	}
	return versionsIn(string(content))
}

// KubernetesVariable names the environment variable that asks for another version of Kubernetes.
const KubernetesVariable = "K8S"

// WantedVersions are the pinned versions, with the Kubernetes that the environment asks for.
func WantedVersions() (Versions, error) {
	versions, err := PinnedVersions()
	if err != nil {
		return Versions{}, err
	}
	return versions.with(os.Getenv(KubernetesVariable))
}

var release = regexp.MustCompile(`^v1\.\d+\.\d+$`)

func (v Versions) with(kubernetes string) (Versions, error) {
	if kubernetes == "" {
		return v, nil
	}
	if !release.MatchString(kubernetes) {
		return Versions{}, fmt.Errorf("%s=%s is not a released version of Kubernetes, such as %s", KubernetesVariable, kubernetes, v.Kubernetes)
	}
	v.Kubernetes = kubernetes
	return v, nil
}

// StagingVersion is the version of the k8s.io modules that are released with a version of Kubernetes:
// v0.x.y with v1.x.y.
func StagingVersion(kubernetes string) string { return "v0" + strings.TrimPrefix(kubernetes, "v1") }

// Requirements reads the versions by module from the require lines of a go.mod. Only lines of the form
// "path version" count, which leaves replace lines out.
func Requirements(goMod string) map[string]string {
	required := map[string]string{}
	for line := range strings.Lines(goMod) {
		line, _, _ = strings.Cut(strings.TrimPrefix(line, "require "), "//")
		if fields := strings.Fields(line); len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			required[fields[0]] = fields[1]
		}
	}
	return required
}

func versionsIn(goMod string) (Versions, error) {
	required := Requirements(goMod)
	var versions Versions
	for path, version := range map[string]*string{
		KubernetesModule:               &versions.Kubernetes,
		"go.etcd.io/etcd/server/v3":    &versions.Etcd,
		"sigs.k8s.io/kwok":             &versions.Kwok,
		CertManagerModule:              &versions.CertManager,
		NetworkAttachmentDefinitionMod: &versions.NetworkAttachmentDefinition,
	} {
		if *version = required[path]; *version == "" {
			return Versions{}, fmt.Errorf("go.mod requires no version of %s", path)
		}
	}
	return versions, nil
}

// Modules that more than their code is used of.
const (
	CertManagerModule              = "github.com/cert-manager/cert-manager"
	KubernetesModule               = "k8s.io/kubernetes"
	KwokModule                     = "sigs.k8s.io/kwok"
	NetworkAttachmentDefinitionMod = "github.com/k8snetworkplumbingwg/network-attachment-definition-client"
)

// Fingerprint is a short hash over everything that decides what the binaries
// are, besides the Go version and platform: the module graph and the mains.
func Fingerprint() (string, error) {
	hash := sha256.New()
	for _, files := range []embed.FS{moduleFiles, mains} {
		err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := files.ReadFile(path)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(hash, "%s %d\n%s", path, len(content), content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("hashing the embedded sources: %w", err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:8], nil
}
