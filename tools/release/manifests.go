package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	imageInManifests     = "ghcr.io/fairlead-io/fairlead"
	nodeImageInManifests = "ghcr.io/fairlead-io/fairlead-csi-node"
)

// writeManifests renders each overlay, with the image by its digest.
func (r *release) writeManifests(digest v1.Hash) error {
	overlays, err := os.ReadDir(filepath.Join(r.root, "manifests", "overlays"))
	if err != nil {
		return err
	}
	for _, overlay := range overlays {
		rendered, err := r.render(overlay.Name(), digest)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", overlay.Name(), err)
		}
		name := filepath.Join(r.dist, "install-"+overlay.Name()+".yaml")
		if err := os.WriteFile(name, rendered, 0o644); err != nil {
			return err
		}
		for _, image := range unpinned(rendered) {
			fmt.Printf("%s names %s without a digest\n", filepath.Base(name), image)
			if image != r.node() {
				return fmt.Errorf("%s is to be pinned", image)
			}
		}
	}
	return nil
}

// node is the image of the CSI node plugin. It has mount.nfs of Debian, so docker builds it and its digest is given.
func (r *release) node() string {
	if r.nodeImage != "" {
		return r.nodeImage
	}
	return nodeImageInManifests + ":" + r.version
}

const kustomization = `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [%s]
images:
  - {name: %s, newName: %s, digest: %q}
  - {name: %s, %s}
`

func (r *release) render(overlay string, digest v1.Hash) ([]byte, error) {
	folder, err := os.MkdirTemp(r.dist, ".overlay-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	base, err := filepath.Rel(folder, filepath.Join(r.root, "manifests", "overlays", overlay))
	if err != nil {
		return nil, err
	}
	node := fmt.Sprintf("newTag: %q", r.version)
	if name, nodeDigest, found := strings.Cut(r.nodeImage, "@"); found {
		node = fmt.Sprintf("newName: %s, digest: %q", name, nodeDigest)
	}
	text := fmt.Sprintf(kustomization, base, imageInManifests, r.image, digest, nodeImageInManifests, node)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o644); err != nil {
		return nil, err
	}
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return objects.AsYaml()
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: (\S+)$`)

// unpinned lists the images that are named without a digest.
func unpinned(rendered []byte) []string {
	var images []string
	for _, match := range imageLine.FindAllSubmatch(rendered, -1) {
		if image := string(match[1]); !pinned.MatchString(image) {
			images = append(images, image)
		}
	}
	return images
}
