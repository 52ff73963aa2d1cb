package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fairlead-io/fairlead/e2e/sandbox/forwarder"
)

// ChartRelease is the name of Fairlead's Helm release.
const ChartRelease = "fairlead"

// InstallChart installs the chart, or upgrades the release to it, with a certificate of Fairlead's own. As with Install,
// the API server calls the forwarder by URL. edit changes the text of the chart's files, by their paths.
func (s *Sandbox) InstallChart(ctx context.Context, edit func(path, text string) string) error {
	if s.forward == nil {
		forward, err := forwarder.New()
		if err != nil {
			return err
		}
		s.forward, s.overlay = forward, SelfSigned
	}
	chart := filepath.Join(s.Dir, "chart")
	if err := s.copyChart(chart, edit); err != nil {
		return fmt.Errorf("copying the chart: %w", err)
	}
	_, err := s.Helm(ctx, "upgrade", "--install", "--create-namespace", ChartRelease, chart, "--set=tls.source=selfSigned",
		"--set=webhook.extraArgs={--serving-name=localhost}", "--set=configuration.longhorn.networks.settle=8s")
	return err
}

// UninstallChart leaves what a user's helm uninstall leaves.
func (s *Sandbox) UninstallChart(ctx context.Context) error {
	_, err := s.Helm(ctx, "uninstall", ChartRelease)
	return err
}

// Helm runs helm in Fairlead's namespace.
func (s *Sandbox) Helm(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, os.Getenv("FAIRLEAD_HELM"), append(args, "--namespace=fairlead-system")...)
	home := filepath.Join(s.Dir, "helm")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+s.State.Kubeconfig, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// serviceInWebhook is where the chart has the API server call a webhook.
var serviceInWebhook = regexp.MustCompile(`service:\n +name: fairlead-webhook\n +namespace: fairlead-system\n +path: (\S+)\n +port: 443\n`)

func (s *Sandbox) copyChart(to string, edit func(path, text string) string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	from := filepath.Join(s.Root, "charts", "fairlead")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(to, path)
		if err != nil {
			return err
		}
		url := fmt.Sprintf("url: https://localhost:%d$1\n", s.forward.Port())
		return os.WriteFile(path, []byte(edit(name, serviceInWebhook.ReplaceAllString(string(text), url))), 0o644)
	})
}
