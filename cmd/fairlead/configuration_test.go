package main

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

func TestConfigurationOfTheCluster(t *testing.T) {
	const head, byNode = "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\n", "networks: {gate: node}\n"
	file := filepath.Join(t.TempDir(), "fairlead.yaml")
	if err := os.WriteFile(file, []byte(head), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := func(text string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead"}, Data: map[string]string{"configuration.yaml": text}}
	}
	for name, test := range map[string]struct {
		file      string
		kept      *corev1.ConfigMap
		forbidden bool
		gate      rollout.NetworkGate
		unread    string
	}{
		"read from the cluster": {kept: kept(head + byNode), gate: rollout.GateNode},
		"given as a file":       {file: file, kept: kept(head + byNode), gate: rollout.GateCluster},
		"not allowed to be read": {
			kept: kept(head + byNode), forbidden: true, gate: rollout.GateCluster,
			unread: "you may not get ConfigMap fairlead-system/fairlead, which ClusterRoles fairlead-planner, fairlead-settings-viewer, fairlead-fence-viewer and fairlead-nfs-viewer allow there",
		},
		"not there":   {gate: rollout.GateCluster, unread: "there is no ConfigMap fairlead-system/fairlead"},
		"not correct": {kept: kept(head + "gate: node"), gate: rollout.GateCluster, unread: "configuration.yaml of ConfigMap fairlead-system/fairlead: "},
	} {
		t.Run(name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
					if test.forbidden {
						return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, nil)
					}
					return c.Get(ctx, key, o, opts...)
				},
			})
			if test.kept != nil {
				builder.WithObjects(test.kept)
			}
			o := clientOptions{commonOptions: commonOptions{configFile: test.file}}
			c, unread, err := o.configuration(t.Context(), builder.Build())
			if err != nil || c.Networks.Gate != test.gate || !strings.HasPrefix(unread, test.unread) || test.unread == "" && unread != "" {
				t.Errorf("gate %s, %q, %v", c.Networks.Gate, unread, err)
			}
		})
	}
}

func TestDefaultConfigurationIsNoted(t *testing.T) {
	var out strings.Builder
	place{}.noteDefaults(&out)
	if out.String() != "" {
		t.Errorf("the configuration is known, and yet: %s", out.String())
	}
	place{unread: "there is none"}.noteDefaults(&out)
	if got := out.String(); got != "The default configuration is used: there is none; pass the file with --config.\n" {
		t.Errorf("got %s", got)
	}
}

func TestConfigurationWithoutProfiles(t *testing.T) {
	if _, err := (&clientOptions{}).pick(&config.Configuration{}, ""); !errors.Is(err, errNoProfile) {
		t.Errorf("got %v", err)
	}
}

func TestCommandsNoteTheDefaultConfiguration(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	kubeconfig := kubeconfigOf(t, gone.URL)
	for _, cmd := range []*cobra.Command{settingsCommand(), planCommand()} {
		var out strings.Builder
		cmd.SetErr(&out)
		cmd.SetOut(io.Discard)
		cmd.SetArgs([]string{"--kubeconfig", kubeconfig})
		if err := cmd.Execute(); err == nil || !strings.Contains(out.String(), "The default configuration is used: ") {
			t.Errorf("%s: got %v and %q", cmd.Name(), err, out.String())
		}
	}
}

// kubeconfigOf writes a kubeconfig file for the server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "` + server + `"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestUnknownProfileOfTheDefaultConfiguration(t *testing.T) {
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	o := clientOptions{profile: "other"}
	for unread, want := range map[string]string{
		"":              `--profile "other" is not in the configuration: it has longhorn`,
		"there is none": `--profile "other" is not in the configuration: it has longhorn; the default configuration is used: there is none; pass the file with --config`,
	} {
		if _, err := o.pick(c, unread); !errors.Is(err, errProfile) || err.Error() != want {
			t.Errorf("got %v", err)
		}
	}
}
