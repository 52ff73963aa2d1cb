package main

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushImage pushes to a repository, as REGISTRY/NAME; the tag is the version. It logs in
// as docker login and podman login have saved it.
func (r *release) pushImage(ctx context.Context, index v1.ImageIndex, repository string) error {
	to, err := name.NewRepository(repository)
	if err != nil {
		return fmt.Errorf("%q is not REGISTRY/NAME without a tag: %w", repository, err)
	}
	tag := to.Tag(r.version)
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	fmt.Println("pushed", tag)
	return nil
}
