package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/settings"
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
		gate      settings.NetworkGate
		unread    string
	}{
		"read from the cluster": {kept: kept(head + byNode), gate: settings.GateNode},
		"given as a file":       {file: file, kept: kept(head + byNode), gate: settings.GateCluster},
		"not allowed to be read": {
			kept: kept(head + byNode), forbidden: true, gate: settings.GateCluster,
			unread: "you may not get ConfigMap fairlead-system/fairlead, which ClusterRole fairlead-planner allows",
		},
		"not there":   {gate: settings.GateCluster, unread: "there is no ConfigMap fairlead-system/fairlead"},
		"not correct": {kept: kept(head + "gate: node"), gate: settings.GateCluster, unread: "configuration.yaml of ConfigMap fairlead-system/fairlead: "},
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

func TestPlanSaysThatItGoesByTheDefaults(t *testing.T) {
	var out strings.Builder
	place{}.noteDefaults(&out)
	if out.String() != "" {
		t.Errorf("the configuration is known, and yet: %s", out.String())
	}
	place{unread: "there is none"}.noteDefaults(&out)
	if got := out.String(); got != "The plan goes by the default configuration: there is none; give another one by --config.\n" {
		t.Errorf("got %s", got)
	}
}

func TestConfigurationWithoutProfiles(t *testing.T) {
	if _, err := (&clientOptions{}).pick(&config.Configuration{}); !errors.Is(err, errNoProfile) {
		t.Errorf("got %v", err)
	}
}
