// release writes what a release consists of: binaries, the container image, manifests, SBOMs and checksums.
// The same commit and the same Go give the same bytes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// architectures of Linux that are released.
var architectures = []string{"amd64", "arm64"}

type release struct {
	// root is the repository, dist where the release is written.
	root, dist string
	version    string
	// commit and its time go into the image's labels.
	commit string
	time   time.Time
	// image and nodeImage are named in the manifests; nodeImage with its digest, if that is known.
	image, nodeImage string
	// architectures of the image.
	architectures []string
	// imageOnly leaves out manifests and checksums. The image is pushed to the repository pushTo, if there is one.
	imageOnly bool
	pushTo    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	r := release{architectures: architectures}
	flag.StringVar(&r.root, "root", "../..", "the repository")
	flag.StringVar(&r.dist, "dist", "../../dist", "where the release is written; what is there is removed")
	flag.StringVar(&r.version, "version", "", "the release's version")
	flag.StringVar(&r.image, "image", "ghcr.io/fairlead-io/fairlead", "the image in the manifests, without its tag")
	flag.StringVar(&r.nodeImage, "node-image", "", "the CSI node plugin's image in the manifests, as NAME@sha256:DIGEST")
	flag.BoolVar(&r.imageOnly, "image-only", false, "write the image, its binaries and SBOMs, and nothing else")
	flag.Func("architecture", "make the image for one architecture alone, such as amd64; a release has "+strings.Join(architectures, " and "), func(name string) error {
		r.architectures = []string{name}
		return nil
	})
	flag.StringVar(&r.pushTo, "push", "", "push the image to this repository, REGISTRY/NAME, with the version as its tag")
	flag.Parse()
	if err := r.complete(ctx); err != nil {
		return err
	}
	return r.write(ctx)
}

var pinned = regexp.MustCompile(`^[^@]+@sha256:[0-9a-f]{64}$`)

func (r *release) complete(ctx context.Context) error {
	if r.version == "" {
		return errors.New("-version is missing")
	}
	if !r.imageOnly && len(r.architectures) < len(architectures) {
		return errors.New("-architecture is for the image alone: give -image-only")
	}
	if r.pushTo != "" {
		r.image = r.pushTo
	}
	if r.nodeImage != "" && !pinned.MatchString(r.nodeImage) {
		return fmt.Errorf("-node-image=%s has no digest: give NAME@sha256:DIGEST", r.nodeImage)
	}
	var err error
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.dist, err = filepath.Abs(r.dist); err != nil {
		return err
	}
	r.commit, r.time, err = lastCommit(ctx, r.root)
	return err
}

func (r *release) write(ctx context.Context) error {
	if err := os.RemoveAll(r.dist); err != nil {
		return fmt.Errorf("removing an earlier release: %w", err)
	}
	if err := os.MkdirAll(r.dist, 0o755); err != nil {
		return fmt.Errorf("making the release's folder: %w", err)
	}
	for _, architecture := range r.architectures {
		fmt.Println("building fairlead for linux/" + architecture)
		if err := r.build(ctx, architecture); err != nil {
			return err
		}
	}
	if err := r.writeBills(ctx); err != nil {
		return err
	}
	digest, err := r.writeImage(ctx)
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	fmt.Printf("image %s@%s\n", r.image, digest)
	if r.imageOnly {
		return nil
	}
	if err := r.writeManifests(digest); err != nil {
		return fmt.Errorf("writing the manifests: %w", err)
	}
	if err := r.writeChart(digest); err != nil {
		return fmt.Errorf("writing the chart: %w", err)
	}
	if err := r.writePlugins(ctx); err != nil {
		return fmt.Errorf("writing the kubectl plugin: %w", err)
	}
	return writeSums(r.dist)
}

// writeImage writes the image as one OCI archive, pushes it if that is asked for, and returns its digest.
func (r *release) writeImage(ctx context.Context) (v1.Hash, error) {
	index, err := r.newImage()
	if err != nil {
		return v1.Hash{}, err
	}
	if err := r.writeArchive(index); err != nil {
		return v1.Hash{}, err
	}
	digest, err := index.Digest()
	if err != nil {
		return v1.Hash{}, err
	}
	if err := os.WriteFile(filepath.Join(r.dist, "fairlead-image.digest"), []byte(digest.String()+"\n"), 0o644); err != nil {
		return v1.Hash{}, err
	}
	if r.pushTo != "" {
		if err := r.pushImage(ctx, index, r.pushTo); err != nil {
			return v1.Hash{}, err
		}
	}
	return digest, nil
}
