package manifests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// module is a Go module of which files are used.
type module struct {
	path string
	// version is empty for modules that go.mod requires.
	version string
	// sum is the module's hash as it would be in go.sum. It is needed only for
	// a module that isn't in go.sum.
	sum string
}

// longhorn is not required by go.mod: only its CRDs are used, and its hundreds
// of requirements would decide the versions of everything else here.
func longhorn() module {
	return module{
		path:    "github.com/longhorn/longhorn-manager",
		version: "v1.7.0",
		sum:     "h1:JCXzJsmunXFCz3d1Y2dn6AN5PC+gIIp0+qCQKy0ysGQ=",
	}
}

// download returns the folder of the module in Go's module cache.
func (m module) download(ctx context.Context, moduleSource string) (string, error) {
	argument, folder := m.path, moduleSource
	if m.version != "" {
		// Outside any module, so that no go.sum is touched.
		argument, folder = m.path+"@"+m.version, os.TempDir()
	}
	answer, err := ask(ctx, argument, folder)
	if err != nil {
		return "", err
	}
	if m.sum != "" && answer.Sum != m.sum {
		return "", fmt.Errorf("downloading %s: its hash is %s, expected %s", argument, answer.Sum, m.sum)
	}
	return answer.Dir, nil
}

// DownloadedGoMod returns the go.mod file of a version of a module, in Go's module cache.
func DownloadedGoMod(ctx context.Context, path, version string) (string, error) {
	answer, err := ask(ctx, path+"@"+version, os.TempDir())
	return answer.GoMod, err
}

// DownloadedFolder returns the sources, in Go's module cache, of a module that the module in folder requires.
func DownloadedFolder(ctx context.Context, path, folder string, flags ...string) (string, error) {
	answer, err := ask(ctx, path, folder, flags...)
	return answer.Dir, err
}

type downloaded struct{ Dir, GoMod, Sum, Error string }

func ask(ctx context.Context, argument, folder string, flags ...string) (downloaded, error) {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"mod", "download", "-json"}, flags, []string{argument})...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GOWORK=off")
	output, err := command.Output()

	// The answer is JSON on failure too, and says more than the exit status.
	var answer downloaded
	if decodeErr := json.Unmarshal(output, &answer); decodeErr != nil && err == nil {
		err = decodeErr
	}
	switch {
	case answer.Error != "":
		return downloaded{}, fmt.Errorf("downloading %s: %s", argument, answer.Error)
	case err != nil:
		return downloaded{}, fmt.Errorf("downloading %s: %w", argument, err)
	}
	return answer, nil
}
