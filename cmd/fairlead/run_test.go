package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runOn runs the program on a kubeconfig file.
func runOn(t *testing.T, kubeconfig, command string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append(append(strings.Fields(command), "--kubeconfig", kubeconfig), args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// A value that must be corrected waits for nothing that a script could wait for.
func TestInvalidValueInEffectIsAnError(t *testing.T) {
	kubeconfig := kubeconfigOf(t, serveAPI(t, nil, systemSetting("priority-class", "Not A Name"), systemSetting("taint-toleration", "")))
	const reason = `priority-class is invalid: nothing is applied until this is corrected: value "Not A Name" must be the name of a PriorityClass`
	for _, test := range []struct {
		args []string
		code int
		out  string
		err  string
	}{
		{nil, 1, "  invalid  ", reason},
		{[]string{"-o", "json"}, 1, `"outcome": "invalid"`, reason},
		{[]string{"--set", "taint-toleration=a=b:NoSchedule"}, 0, "taint-toleration", ""},
		{[]string{"--set", "priority-class="}, 0, "Not A Name", ""},
	} {
		code, out, err := runOn(t, kubeconfig, "plan", test.args...)
		if code != test.code || !strings.Contains(out, test.out) || !strings.Contains(err, test.err) || test.err == "" && strings.Contains(err, "fairlead:") {
			t.Errorf("%q: code %d\n%s%s", test.args, code, out, err)
		}
	}
}

func TestPlanGoesByInstalledConfiguration(t *testing.T) {
	installed := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead"},
		Data:       map[string]string{"configuration.yaml": "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nnetworks: {missing: Refuse}\n"},
	}
	for _, test := range []struct {
		objects []client.Object
		code    int
		says    string
	}{
		{nil, 0, "The default configuration is used: there is no ConfigMap fairlead-system/fairlead"},
		{[]client.Object{installed}, 1, "storage-network of settings.longhorn.io is refused"},
	} {
		kubeconfig := kubeconfigOf(t, serveAPI(t, nil, append(test.objects, systemSetting("storage-network", ""))...))
		if code, out, err := runOn(t, kubeconfig, "plan", "--set", "storage-network=kube-system/missing"); code != test.code || !strings.Contains(err, test.says) {
			t.Errorf("code %d\n%s%s", code, out, err)
		}
	}
}

func TestContextPicksCluster(t *testing.T) {
	address := serveAPI(t, nil)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: gone, contexts: [{name: gone, context: {cluster: gone}}, {name: lab, context: {cluster: lab}}],
clusters: [{name: gone, cluster: {server: "http://127.0.0.1:1"}}, {name: lab, cluster: {server: "` + address + `"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"settings", "plan", "fences", "nfs", "fences drill node-1", "nfs plan a/b"} {
		code, _, err := runOn(t, kubeconfig, command, "--context", "lab")
		if unreachable := strings.Contains(err, "127.0.0.1:1"); unreachable || code != 0 && strings.Count(command, " ") == 0 {
			t.Errorf("%s: code %d, %s", command, code, err)
		}
		if code, _, err := runOn(t, kubeconfig, command, "--context", "prod"); code != 1 || !strings.Contains(err, `context "prod" does not exist`) {
			t.Errorf("%s: code %d, %s", command, code, err)
		}
	}
}
