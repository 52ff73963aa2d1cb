package cli

import (
	"context"
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

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestConfigurationOfTheCluster(t *testing.T) {
	const head = "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\n"
	const byNode = head + "longhorn: {networks: {gate: node}}\n"
	file := filepath.Join(t.TempDir(), "fairlead.yaml")
	must.Do(t, os.WriteFile(file, []byte(head), 0o600))
	forbidden := interceptor.Funcs{Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
		return apierrors.NewForbidden(corev1.Resource("configmaps"), key.Name, nil)
	}}
	for _, test := range []struct {
		name, file, stored string
		funcs              interceptor.Funcs
		gate               rollout.NetworkGate
		unread             string
	}{
		{name: "ConfigMap", stored: byNode, gate: rollout.GateNode},
		{name: "file", file: file, stored: byNode, gate: rollout.GateCluster},
		{
			name: "forbidden ConfigMap", stored: byNode, funcs: forbidden, gate: rollout.GateCluster,
			unread: "you may not get ConfigMap fairlead-system/fairlead, which ClusterRoles fairlead-planner, fairlead-settings-viewer, fairlead-fence-viewer and fairlead-nfs-viewer allow there",
		},
		{name: "no ConfigMap", gate: rollout.GateCluster, unread: "there is no ConfigMap fairlead-system/fairlead"},
		{name: "malformed ConfigMap", stored: head + "gate: node", gate: rollout.GateCluster, unread: "configuration.yaml of ConfigMap fairlead-system/fairlead: "},
	} {
		builder := fake.NewClientBuilder().WithInterceptorFuncs(test.funcs)
		if test.stored != "" {
			builder.WithObjects(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead"}, Data: map[string]string{"configuration.yaml": test.stored}})
		}
		o := ClientOptions{ClusterOptions: ClusterOptions{ConfigFile: test.file}}
		c, unread, err := o.Configuration(t.Context(), builder.Build())
		must.Do(t, err)
		if c.Longhorn.Networks.Gate != test.gate || !strings.HasPrefix(unread, test.unread) || test.unread == "" && unread != "" {
			t.Errorf("%s: gate %s, %q", test.name, c.Longhorn.Networks.Gate, unread)
		}
		must.Equal(t, o.unsure, test.unread != "" && test.name != "no ConfigMap", "%s", test.name)
	}
}

func TestDefaultConfigurationIsNoted(t *testing.T) {
	for unread, want := range map[string]string{
		"":              "",
		"there is none": "The default configuration is used: there is none; pass the file with --config.\n",
	} {
		var out strings.Builder
		NoteDefaults(&out, unread)
		must.Equal(t, out.String(), want)
	}
}

func TestNamespaceReplacesTheConfigured(t *testing.T) {
	c, err := config.Load("")
	must.Do(t, err)
	target := (&ClientOptions{namespace: "storage"}).target(c, nil)
	must.Equal(t, target.Longhorn.Names().Namespace, "storage")
	must.Equal(t, c.Longhorn.Namespace, "longhorn-system", "the configuration itself")
}

func TestTargetWithoutLonghornHasNoReader(t *testing.T) {
	target := (&ClientOptions{}).target(&config.Configuration{}, nil)
	must.True(t, target.Longhorn == nil && target.Reader == nil, "got %+v", target)
}
