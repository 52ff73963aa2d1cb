package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/cli/plan"
	"github.com/fairlead-io/fairlead/cli/settings"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

// runOn runs the program on a kubeconfig file.
func runOn(t *testing.T, kubeconfig, command string, args ...string) (code int, out, errOut string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), slices.Concat([]string{"fairlead"}, strings.Fields(command), []string{"--kubeconfig", kubeconfig}, args), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// A value that must be corrected waits for nothing that a script could wait for.
func TestInvalidValueInEffectIsAnError(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil, objects.LonghornSetting("priority-class", "Not A Name"), objects.LonghornSetting("taint-toleration", "")))
	const reason = `priority-class is invalid: not applied until the value is corrected: value "Not A Name" must be the name of a PriorityClass`
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

// Regression: kubectl's habit of -n showed defaults as settings in effect, and data paths as wrong.
func TestNamespaceWithoutStorageSystemIsAnError(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil, objects.HealthyCluster(time.Now())...))
	for _, command := range []string{"settings", "plan", "status", "volumes", "status volume pvc-a"} {
		code, out, err := runOn(t, kubeconfig, command, "-n", "team-x")
		must.Check(t, code == 1 && out == "" && strings.Contains(err, `--namespace "team-x": has no settings of Longhorn`), "%s: code %d\n%s%s", command, code, out, err)
	}
	code, out, err := runOn(t, kubeconfig, "volumes pvc-a", "-n", "longhorn-system")
	must.Check(t, code == 0 && strings.Contains(out, "share-manager-pvc-a"), "code %d\n%s%s", code, out, err)
}

func TestPlanGoesByInstalledConfiguration(t *testing.T) {
	installed := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "fairlead"},
		Data:       map[string]string{"configuration.yaml": "apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nlonghorn: {networks: {missing: Refuse}}\n"},
	}
	for _, test := range []struct {
		objects []client.Object
		code    int
		says    string
	}{
		{nil, 0, "The default configuration is used: there is no ConfigMap fairlead-system/fairlead"},
		{[]client.Object{installed}, 1, "storage-network of settings.longhorn.io is refused"},
	} {
		kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil, append(test.objects, objects.LonghornSetting("storage-network", ""))...))
		if code, out, err := runOn(t, kubeconfig, "plan", "--set", "storage-network=kube-system/missing"); code != test.code || !strings.Contains(err, test.says) {
			t.Errorf("code %d\n%s%s", code, out, err)
		}
	}
}

func TestContextPicksCluster(t *testing.T) {
	address := clitest.ServeAPI(t, nil)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: gone, contexts: [{name: gone, context: {cluster: gone}}, {name: lab, context: {cluster: lab}}],
clusters: [{name: gone, cluster: {server: "http://127.0.0.1:1"}}, {name: lab, cluster: {server: "` + address + `"}}]}`
	must.Do(t, os.WriteFile(kubeconfig, []byte(text), 0o600))
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

// The default configuration is for clusters without one, and not for a cluster that does not answer.
func TestClusterThatDoesNotAnswerIsAnError(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	kubeconfig := clitest.Kubeconfig(t, gone.URL)
	for _, cmd := range []*cobra.Command{settings.Command(), plan.Command()} {
		var out strings.Builder
		cmd.SetErr(&out)
		cmd.SetOut(io.Discard)
		cmd.SetArgs([]string{"--kubeconfig", kubeconfig})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "reading ConfigMap fairlead-system/fairlead") || strings.Contains(out.String(), "default configuration") {
			t.Errorf("%s: got %v and %q", cmd.Name(), err, out.String())
		}
	}
}

// A message of the API server may quote any text of a user.
func TestNoErrorSteersTerminal(t *testing.T) {
	server := clitest.ServeAPI(t, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: clitest.Hostile,
	})
	kubeconfig := clitest.Kubeconfig(t, server)
	for _, command := range []string{"settings", "plan", "fences", "fences drill node-1", "nfs", "nfs plan a/b"} {
		t.Run(command, func(t *testing.T) {
			var out, errOut strings.Builder
			code := run(t.Context(), slices.Concat([]string{"fairlead"}, strings.Fields(command), []string{"--kubeconfig", kubeconfig}), &out, &errOut)
			must.Check(t, code == 1 && strings.Contains(errOut.String(), "fairlead: ") && out.String() == "", "code %d, %q, %q", code, out.String(), errOut.String())
			clitest.CheckPrinted(t, errOut.String())
		})
	}
}

// kubectl finds the program as a plugin by the name kubectl-fairlead.
func TestPluginHelpSaysKubectl(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"settings", "--help"}, {"nfs", "plan", "--help"}, {"status", "volume", "--help"}, {"__complete", "settings", "storage-"}} {
		var out, errOut strings.Builder
		if code := run(t.Context(), append([]string{"/usr/local/bin/kubectl-fairlead"}, args...), &out, &errOut); code != 0 {
			t.Fatalf("%q: code %d, %s", args, code, errOut.String())
		}
		text := out.String()
		if args[0] == "__complete" {
			must.Check(t, strings.Contains(text, "storage-network\n"), "no completion: %s", text)
			continue
		}
		must.Check(t, strings.Contains(text, "kubectl fairlead") && !strings.Contains(text, "\n  fairlead "), "%q:\n%s", args, text)
	}
}

func TestOutputForPeopleNamesCluster(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil))
	for _, command := range []string{"settings", "plan", "fences", "nfs", "status", "volumes"} {
		code, out, err := runOn(t, kubeconfig, command)
		if !strings.HasPrefix(out, "Cluster c (http://127.0.0.1:") {
			t.Errorf("%s: code %d, %s%s", command, code, out, err)
		}
		if _, out, _ := runOn(t, kubeconfig, command, "-o", "json"); !strings.HasPrefix(out, "{") {
			t.Errorf("%s: %s", command, out)
		}
	}
}

func TestMissingKubeconfigIsNamed(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	if code, _, err := runOn(t, "", "status"); code != 1 || !strings.Contains(err, "there is no kubeconfig in /nonexistent: name the file by --kubeconfig or KUBECONFIG") {
		t.Errorf("code %d, %s", code, err)
	}
	var out strings.Builder
	if code := run(t.Context(), []string{"fairlead", "--version"}, &out, &out); code != 0 || out.String() != "fairlead version dev\n" {
		t.Errorf("code %d, %s", code, out.String())
	}
}

func TestMisspelledSettingIsSuggested(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil))
	if _, _, err := runOn(t, kubeconfig, "settings", "storage-netwrok"); !strings.Contains(err, "did you mean storage-network") {
		t.Error(err)
	}
}

// Scripts go by the exit code.
func TestStatusExitCodes(t *testing.T) {
	record := objects.Record(objects.Network("storage-net", "lhnet1"))
	record.Status.Phase = "Applied"
	settings := []client.Object{objects.LonghornSetting("storage-network", "kube-system/storage-net"), objects.LonghornSetting("storage-network-for-rwx-volume-enabled", "true")}
	wrong := append([]client.Object{record, objects.LonghornVolume("pvc-a", "node-1", objects.RWX), objects.Headless("pvc-a", objects.Network("storage-net", "lhnet1"))}, settings...)
	cluster := objects.Record(multus.Attachment{})
	cluster.Status.Phase = "Applied"
	for want, all := range map[int][]client.Object{0: {cluster}, 2: {}, 3: wrong} {
		kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil, append(objects.Installation(time.Now()), all...)...))
		for _, command := range []string{"status", "status -o json"} {
			if code, out, err := runOn(t, kubeconfig, command); code != want {
				t.Errorf("%s: code %d, want %d\n%s%s", command, code, want, out, err)
			}
		}
	}
}

// full refuses to be written to, like a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestFailedOutputIsAnError(t *testing.T) {
	var says strings.Builder
	code := run(t.Context(), []string{"fairlead", "version", "--client"}, full{}, &says)
	must.Check(t, code == 1 && says.String() == "fairlead: writing: no space left on device\n", "code %d: %s", code, &says)
}
