package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func (r *release) binary(architecture string) string {
	return filepath.Join(r.dist, "fairlead-linux-"+architecture)
}

func (r *release) build(ctx context.Context, architecture string) error {
	return r.compile(ctx, "linux", architecture, r.binary(architecture))
}

// compile leaves out what differs between machines: paths, cgo, and what git says of the work tree.
func (r *release) compile(ctx context.Context, system, architecture, file string) error {
	return r.run(ctx, []string{"GOOS=" + system, "GOARCH=" + architecture, "GOAMD64=v1", "GOARM64=v8.0"}, r.root,
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X github.com/fairlead-io/fairlead/cli.Version="+r.version,
		"-o", file, "./cmd/fairlead")
}

func billOf(binary string) string { return binary + ".cdx.json" }

// writeBills writes what each binary is made of, as CycloneDX SBOMs.
func (r *release) writeBills(ctx context.Context) error {
	fmt.Println("writing the SBOMs")
	tool := filepath.Join(r.dist, ".cyclonedx-gomod")
	defer os.Remove(tool)
	if err := r.run(ctx, nil, filepath.Join(r.root, "tools", "release"), "go", "build", "-trimpath", "-buildvcs=false", "-o", tool,
		"github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod"); err != nil {
		return err
	}
	for _, architecture := range r.architectures {
		binary := r.binary(architecture)
		if err := r.run(ctx, nil, r.root, tool, "bin", "-json", "-std", "-noserial", "-notimestamp",
			"-version", r.version, "-output", billOf(binary), binary); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) run(ctx context.Context, env []string, folder, name string, args ...string) error {
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = folder
	command.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOEXPERIMENT="), env...)
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command.Args, " "), err, output)
	}
	return nil
}

func lastCommit(ctx context.Context, folder string) (string, time.Time, error) {
	output, err := exec.CommandContext(ctx, "git", "-C", folder, "log", "-1", "--format=%H %ct").Output()
	if err != nil {
		return "", time.Time{}, fmt.Errorf("asking git for the last commit: %w", err)
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("reading the time of commit %s: %w", commit, err)
	}
	return commit, time.Unix(unix, 0).UTC(), nil
}
