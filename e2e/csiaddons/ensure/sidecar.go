package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// outsideACluster is all that is changed in csi-addons: its sidecar reads the API
// server's address and its token from where a kubelet puts them, and nowhere
// else, and listens on every address of the machine. Here it takes --kubeconfig,
// a flag that it has anyway, and the loopback.
var outsideACluster = []struct{ from, to string }{
	{"\t\"k8s.io/client-go/rest\"\n", ""},
	{"rest.InClusterConfig()", "ctrl.GetConfig()"},
	{"server.NewSidecarServer(*controllerIP,", `server.NewSidecarServer("127.0.0.1",`},
}

// withSidecarOutsideACluster copies csi-addons, changes its sidecar's main, and
// returns a go.mod that builds from the copy.
func withSidecarOutsideACluster(ctx context.Context, source, temporary string) (string, error) {
	changed := filepath.Join(temporary, "source")
	if err := os.CopyFS(changed, os.DirFS(source)); err != nil {
		return "", fmt.Errorf("copying csi-addons: %w", err)
	}
	main := filepath.Join(changed, "sidecar", "main.go")
	content, err := os.ReadFile(main)
	if err != nil {
		return "", fmt.Errorf("reading the sidecar's main: %w", err)
	}
	text := string(content)
	for _, change := range outsideACluster {
		if n := strings.Count(text, change.from); n != 1 {
			return "", fmt.Errorf("the sidecar's main has %q %d times, not once: see what has become of it", change.from, n)
		}
		text = strings.Replace(text, change.from, change.to, 1)
	}
	if err := os.WriteFile(main, []byte(text), 0o644); err != nil {
		return "", fmt.Errorf("writing the sidecar's main: %w", err)
	}
	modfile := filepath.Join(temporary, "go.mod")
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(temporary, name), content, 0o644); err != nil {
			return "", fmt.Errorf("writing %s: %w", name, err)
		}
	}
	_, err = run(ctx, "mod", "edit", "-replace="+module+"="+changed, modfile)
	return modfile, err
}
