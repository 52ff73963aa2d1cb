package main

import (
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func TestPushedImageHasTheDigestOfTheArchive(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	r := newRelease(t)
	r.pushTo = strings.TrimPrefix(server.URL, "http://") + "/team/fairlead"
	digest, err := r.writeImage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(r.pushTo + ":" + r.version)
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Index(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if got, err := pulled.Digest(); err != nil || got != digest {
		t.Errorf("the registry has %s (%v), the archive %s", got, err, digest)
	}
}

func TestPushTakesARepositoryWithoutATag(t *testing.T) {
	r := newRelease(t)
	r.pushTo = "registry.example/fairlead:v1"
	if _, err := r.writeImage(t.Context()); err == nil || !strings.Contains(err.Error(), "without a tag") {
		t.Errorf("the error is %v", err)
	}
}
