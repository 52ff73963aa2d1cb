package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/cli"
	"github.com/fairlead-io/fairlead/cli/clitest"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/webhook"
)

// run is the command with its arguments and standard input.
func run(t *testing.T, want error, in string, args ...string) string {
	t.Helper()
	return clitest.Output(t, want, func(out io.Writer) error {
		cmd := Command()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		cmd.SetIn(strings.NewReader(in))
		cmd.SetOut(&cli.Terminal{Writer: out}) // as main does
		cmd.SetErr(out)
		return cmd.ExecuteContext(t.Context())
	})
}

func contains(t *testing.T, text, want string) {
	t.Helper()
	must.Check(t, strings.Contains(text, want), "%q is missing in:\n%s", want, text)
}

func TestDirectoryIsReviewedWithoutCluster(t *testing.T) {
	t.Setenv("KUBECONFIG", "/nonexistent")
	for output, file := range map[string]string{cli.OutputTable: "app.txt", cli.OutputJSON: "app.json", outputJUnit: "app.xml"} {
		clitest.Golden(t, file, run(t, cli.ExitWrong, "", "-f", "testdata/app", "--config", "testdata/config.yaml", "-o", output))
	}
}

// An empty cluster and no fault: nothing is printed but the summary.
func TestGoodManifestsExitWithZero(t *testing.T) {
	out := run(t, nil, "apiVersion: fairlead.io/v1alpha1\nkind: Setting\nmetadata: {name: endpoint-network-for-rwx-volume, namespace: longhorn-system}\nvalue: ''\n", "-f", "-")
	contains(t, out, "1 object reviewed: 0 refused")
}

func TestPriorityClassesOfKubernetesAreKnown(t *testing.T) {
	setting := "apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: priority-class, namespace: longhorn-system}\nvalue: "
	run(t, nil, setting+"system-node-critical\n", "-f", "-")
	contains(t, run(t, cli.ExitWrong, setting+"absent\n", "-f", "-"), "there is no PriorityClass of this name (in this cluster: system-cluster-critical, system-node-critical)")
}

func TestDefaultSettingsOfLonghornAreReviewed(t *testing.T) {
	out := run(t, cli.ExitWrong, `apiVersion: v1
kind: ConfigMap
metadata: {name: longhorn-default-setting, namespace: longhorn-system}
data:
  default-setting.yaml: |-
    priority-class: system-node-critical
    storage-network: kube-system
    guaranteed-instance-manager-cpu: 20
`, "-f", "-")
	contains(t, out, "REFUSED: Setting longhorn-system/storage-network in ConfigMap longhorn-default-setting  (-:1)")
	contains(t, out, "3 objects reviewed: 1 refused")
}

func TestOwnConfigurationIsReviewed(t *testing.T) {
	const object = `apiVersion: v1
kind: ConfigMap
metadata: {name: fairlead, namespace: fairlead-system}
data:
  configuration.yaml: |
    apiVersion: config.fairlead.io/v1alpha1
    kind: Configuration
`
	contains(t, run(t, nil, object, "-f", "-"), "1 object reviewed: 0 refused")
	contains(t, run(t, cli.ExitWrong, object+"    longhorn: {networks: {gaet: node}}\n", "-f", "-"), `configuration.yaml, with which no process of Fairlead starts: reading YAML: unknown field "longhorn.networks.gaet"`)
}

func TestSubdirectoriesAreReviewedOnRequest(t *testing.T) {
	dir := t.TempDir()
	for file, name := range map[string]string{"a.yaml": "priority-class", "deep/er/b.yml": "taint-toleration"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, file), []byte("apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: "+name+", namespace: longhorn-system}\nvalue: ''\n"), 0o644))
	}
	contains(t, run(t, nil, "", "-f", dir), "1 object reviewed")
	contains(t, run(t, nil, "", "-R", "-f", dir), "2 objects reviewed")
}

func TestWarningsAsErrors(t *testing.T) {
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, annotations: {fairlead.io/volume-netwrok: a/b}}\n"
	contains(t, run(t, nil, claim, "-f", "-"), "WARNED: PersistentVolumeClaim default/a")
	run(t, cli.ExitWrong, claim, "-f", "-", "--warnings-as-errors")
}

// The cluster has the setting, so the change is an update of the merged object, with a warning about its effect.
func TestManifestsAreJudgedOnFactsOfCluster(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil,
		objects.LonghornSetting("storage-network", ""), objects.LonghornSetting("priority-class", "longhorn-critical"),
		objects.LonghornVolume("pvc-a", "node-1", objects.RWX)))
	setting := func(name, value string) string {
		return "apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: " + name + ", namespace: longhorn-system}\nvalue: " + value + "\n---\n"
	}
	args := []string{"-f", "-", "--facts", "cluster", "--kubeconfig", kubeconfig}
	out := run(t, nil, setting("storage-network", "kube-system/absent")+setting("priority-class", "longhorn-critical"), args...)
	contains(t, out, "Cluster c (http://127.0.0.1")
	contains(t, out, "kube-system/absent")
	contains(t, out, "2 objects reviewed: 0 refused, 0 undecided, 0 patched, 1 with warnings.") // one value is the cluster's already
	contains(t, run(t, cli.ExitWrong, setting("priority-class", "absent"), args...), "refused: ")
}

// What can't be reviewed is reported, and the other manifests are reviewed.
func TestUnreviewableManifestsAreUndecided(t *testing.T) {
	kubeconfig := clitest.Kubeconfig(t, clitest.ServeAPI(t, nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}))
	out := run(t, errUndecided, `
apiVersion: longhorn.io/v1beta1
kind: Setting
metadata: {name: storage-network, namespace: longhorn-system}
value: garbage
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a, annotations: {fairlead.io/volume-network: b/c}}
spec: wrong
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: b, annotations: {fairlead.io/volume-netwrok: b/c}}
`, "-f", "-", "--facts", "cluster", "--kubeconfig", kubeconfig)
	contains(t, out, "UNDECIDED: Setting longhorn-system/storage-network")
	contains(t, out, "UNDECIDED: PersistentVolumeClaim default/a")
	contains(t, out, "WARNED: PersistentVolumeClaim default/b")
}

// The API server drops an unknown field without a word.
func TestUnknownFieldsOfOurKindsAreRefused(t *testing.T) {
	out := run(t, cli.ExitWrong, `
apiVersion: fairlead.io/v1alpha1
kind: NFSService
metadata: {name: a, namespace: default}
spec: {exposre: {}}
---
apiVersion: fairlead.io/v1alpha1
kind: NFSServices
metadata: {name: b, namespace: default}
`, "-f", "-")
	contains(t, out, "REFUSED: NFSService default/a")
	contains(t, out, `unknown field "spec.exposre"`)
	contains(t, out, "fairlead.io/v1alpha1 has no kind NFSServices")
}

// The API server gives a new claim its class before it asks; a controller creates the claims of a StatefulSet once.
func TestClaimsAreReviewedAsTheAPIServerSeesThem(t *testing.T) {
	claims := `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: other, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: rbd.csi.ceph.com
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a, annotations: {fairlead.io/volume-network: b/c}}
spec: {accessModes: [ReadWriteMany]}
`
	contains(t, run(t, nil, claims, "-f", "-"), "rbd.csi.ceph.com")
	set := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: web}\nspec: {volumeClaimTemplates: [{metadata: {name: data, annotations: {fairlead.io/volume-addresses: x}}}]}\n"
	run(t, cli.ExitWrong, set, "-f", "-")
	server := clitest.ServeAPI(t, nil, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data-web-0"}})
	contains(t, run(t, nil, set, "-f", "-", "--facts", "cluster", "--kubeconfig", clitest.Kubeconfig(t, server)), "0 objects reviewed")
}

func TestBadInputNamesFileAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                      "-:1: not YAML",
		"\n# c\n---\n\nkind: Pod\n": "-:5: not a Kubernetes object",
		"a: 1\na: 2\n":              "-:1: not YAML",
		"- a\n":                     "-:1: not a Kubernetes object",
		"apiVersion: v1\nkind: List\nitems: [{kind: Pod}]\n":      "-:1: not a Kubernetes object",
		"apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\n": "-:1: not a Kubernetes object",
	} {
		_, err := load([]string{"-"}, false, strings.NewReader(text))
		must.Check(t, err != nil && strings.HasPrefix(err.Error(), want), "%q: %v, want %s", text, err, want)
	}
	if _, err := load([]string{"-"}, false, strings.NewReader("# nothing\n---\n")); !errors.Is(err, errNothing) {
		t.Errorf("got %v", err)
	}
	for want, places := range map[string][]string{"no manifests": nil, "no such file": {"absent.yaml"}, "has no file that ends in": {t.TempDir()}} {
		if _, err := load(places, false, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", places, err, want)
		}
	}
}

// Any text is manifests or an error with its place. Each manifest can be reviewed.
func FuzzManifests(f *testing.F) {
	f.Add("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: a, annotations: {fairlead.io/volume-network: b}}\n---\n---\nkind: List\n")
	f.Add("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {volumeClaimTemplates: [{metadata: {name: 1}}, 2]}\n")
	f.Add("apiVersion: longhorn.io/v1beta2\nkind: Setting\nmetadata: {name: storage-network, namespace: longhorn-system}\nvalue: {a: b}\n")
	o := &options{facts: factsNone, namespace: "default"}
	cmd := Command()
	cmd.SetContext(context.Background())
	f.Fuzz(func(t *testing.T, text string) {
		manifests, err := load([]string{"-"}, false, strings.NewReader(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "-:") && !errors.Is(err, errNothing) {
				t.Fatalf("%v names no place", err)
			}
			return
		}
		r, err := o.reviewer(cmd)
		must.Do(t, err)
		var all []objectView
		for _, m := range withClaims(manifests) {
			all = append(all, r.review(t.Context(), m))
		}
		must.Do(t, writeJUnit(io.Discard, viewOf(factsNone, all), true))
	})
}

// The test has the entries that match, by operation, kind, labels and namespace.
func TestEntriesMatch(t *testing.T) {
	o := &options{facts: factsNone}
	o.ConfigFile = "testdata/config.yaml"
	cmd := Command()
	cmd.SetContext(t.Context())
	r, err := o.reviewer(cmd)
	must.Do(t, err)
	for name, test := range map[string]struct {
		object, old string
		want        string
	}{
		"client pod": {`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"longhorn-system","labels":{"app":"longhorn-csi-plugin"}}}`, "",
			"client-pods.longhorn.fairlead.io"},
		"pod without the labels": {`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"longhorn-system"}}`, "", ""},
		"client pod elsewhere":   {`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"other","labels":{"app":"longhorn-csi-plugin"}}}`, "", ""},
		"update of a client pod": {`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"longhorn-system","labels":{"app":"longhorn-csi-plugin"}}}`, `{}`, ""},
		"Fairlead's setting": {`{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"namespace":"longhorn-system"}}`, `{}`,
			"settings.longhorn.fairlead.io"},
		"Fairlead's setting elsewhere": {`{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"namespace":"other"}}`, "",
			"stray-settings.fairlead.io"},
		"setting of another version": {`{"apiVersion":"fairlead.io/v2","kind":"Setting","metadata":{"namespace":"longhorn-system"}}`, "", ""},
		"new network":                {`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"namespace":"a"}}`, "", ""},
		"changed network":            {`{"apiVersion":"k8s.cni.cncf.io/v1","kind":"NetworkAttachmentDefinition","metadata":{"namespace":"a"}}`, `{}`, "networks.fairlead.io"},
		"volume": {`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"a"}}`, "",
			"nfs-volume-options.fairlead.io volume-networks.fairlead.io nfs-volumes.fairlead.io"},
		"changed volume":      {`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"a"}}`, `{}`, "volume-networks.fairlead.io nfs-volumes.fairlead.io"},
		"claim of Kubernetes": {`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"namespace":"kube-system"}}`, "", ""},
		"status alone":        {`{"apiVersion":"longhorn.io/v1beta2","kind":"ShareManager","metadata":{"namespace":"longhorn-system"}}`, `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			object, operation := &unstructured.Unstructured{}, admissionv1.Create
			must.Do(t, json.Unmarshal([]byte(test.object), &object.Object))
			var old *unstructured.Unstructured
			if test.old != "" {
				old, operation = object, admissionv1.Update
			}
			var got []string
			for _, e := range r.entries {
				if e.matches(requestOf(object, old, operation), object, old) {
					got = append(got, e.Name())
				}
			}
			must.Equal(t, strings.Join(got, " "), test.want)
		})
	}
}

func TestMisspeltSettingIsWarnedOf(t *testing.T) {
	o := &options{facts: factsNone}
	cmd := Command()
	cmd.SetContext(t.Context())
	for text, want := range map[string]string{
		"{apiVersion: longhorn.io/v1beta2, kind: Setting, metadata: {namespace: longhorn-system, name: storage-netwrok}, value: a}":                                          "; did you mean storage-network?",
		"{apiVersion: longhorn.io/v1beta2, kind: Setting, metadata: {name: storage-netwrok}, value: a}":                                                                      "; did you mean storage-network?",
		"{apiVersion: longhorn.io/v1beta2, kind: Setting, metadata: {namespace: longhorn-system, name: log-level}, value: Info}":                                             "",
		"{apiVersion: v1, kind: ConfigMap, metadata: {namespace: longhorn-system, name: longhorn-default-setting}, data: {default-setting.yaml: 'priority-clas: critical'}}": "; did you mean priority-class?",
	} {
		r, err := o.reviewer(cmd)
		must.Do(t, err)
		manifests, err := load([]string{"-"}, false, strings.NewReader(text))
		must.Do(t, err)
		view := r.review(t.Context(), withDefaultSettings(manifests)[0])
		must.Check(t, (view.Outcome == outcomeWarned) == (want != "") && strings.HasSuffix(strings.Join(view.Warnings, " "), want), "%s: %s %v", text, view.Outcome, view.Warnings)
	}
}

// A reviewer may read what the rules are about. Other manifests, such as Namespaces, need no right.
func TestUnreadableManifestsOfOtherKindsAreNotUndecided(t *testing.T) {
	o := &options{facts: factsNone}
	cmd := Command()
	cmd.SetContext(t.Context())
	r, err := o.reviewer(cmd)
	must.Do(t, err)
	r.facts.cluster = forbidden{}
	for text, want := range map[string]string{
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"a"}}`:             outcomeOther,
		`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a"}}`: outcomeUndecided,
	} {
		manifests, err := load([]string{"-"}, false, strings.NewReader(text))
		must.Do(t, err)
		view := r.review(t.Context(), manifests[0])
		must.Check(t, view.Outcome == want, "%s: %s %v", text, view.Outcome, view.Errors)
	}
}

// forbidden refuses to read.
type forbidden struct{ client.Reader }

func (forbidden) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "a", nil)
}

// Namespaces are matched by their names alone, so that no namespace is read.
func TestEntriesSelectNamespacesByName(t *testing.T) {
	entries, err := entriesOf(&webhook.Longhorn{Names: longhorn.DefaultNames()}, []string{"nfs.fairlead.io"}, nil)
	must.Do(t, err)
	for _, e := range entries {
		requirements, _ := e.namespaces.Requirements()
		for _, r := range requirements {
			must.Check(t, r.Key() == corev1.LabelMetadataName, "%s selects namespaces by %s", e.Name(), r.Key())
		}
	}
}

// A manifest takes the place of the cluster's object, for typed and untyped readers and by selectors.
func TestAppliedManifestsAreFacts(t *testing.T) {
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects.Pod("a", "changed", "node-1"), objects.Pod("a", "kept", "node-1")).Build()
	f := &facts{cluster: live, scheme: scheme, applied: map[objectKey]*unstructured.Unstructured{}}
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"changed","namespace":"a","labels":{"x":"y"}},"spec":{"nodeName":"node-2"}}`,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"new","namespace":"b"},"spec":{"nodeName":"node-1"}}`,
	} {
		o := &unstructured.Unstructured{}
		must.Do(t, json.Unmarshal([]byte(text), o))
		f.apply(o)
	}
	names := func(options ...client.ListOption) string {
		var list corev1.PodList
		must.Do(t, f.List(t.Context(), &list, options...))
		var all []string
		for _, p := range list.Items {
			all = append(all, p.Namespace+"/"+p.Name+"@"+p.Spec.NodeName)
		}
		return strings.Join(all, " ")
	}
	must.Equal(t, len(strings.Fields(names())), 3)
	must.Equal(t, names(client.InNamespace("b")), "b/new@node-1")
	must.Equal(t, names(client.MatchingLabels{"x": "y"}), "a/changed@node-2")
	f.cluster = pages{live}
	must.Equal(t, names(), "a/kept@node-1") // not the last page
	var pod corev1.Pod
	must.Do(t, f.Get(t.Context(), client.ObjectKey{Namespace: "a", Name: "changed"}, &pod))
	must.Equal(t, pod.Spec.NodeName, "node-2")
}

// pages says of each page that another one follows.
type pages struct{ client.Reader }

func (p pages) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := p.Reader.List(ctx, list, options...)
	list.SetContinue("next")
	return err
}

// kubectl apply removes what the last applied configuration had, keeps what others have added, and merges lists by their keys.
func TestExistingObjectIsMergedAsByKubectlApply(t *testing.T) {
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	object := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		must.Do(t, o.UnmarshalJSON([]byte(text)))
		return o
	}
	last := `{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\",\"metadata\":{\"name\":\"a\",\"annotations\":{\"removed\":\"x\"}}}`
	existing := object(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{"removed":"x","of-others":"y","kubectl.kubernetes.io/last-applied-configuration":"` + last + `"}},"spec":{"volumeName":"pv"}}`)
	after, err := merged(scheme, object(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"a","annotations":{"new":"z"}}}`), existing)
	must.Do(t, err)
	annotations := after.GetAnnotations()
	must.Equal(t, []string{annotations["removed"], annotations["of-others"], annotations["new"]}, []string{"", "y", "z"})
	volume, _, _ := unstructured.NestedString(after.Object, "spec", "volumeName")
	must.Equal(t, volume, "pv")
	daemonSet := `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[{"name":"c","image":"i"%s}]}}}}`
	defaulted := object(fmt.Sprintf(daemonSet, `,"imagePullPolicy":"Always"`))
	after, err = merged(scheme, object(fmt.Sprintf(daemonSet, "")), defaulted)
	must.Do(t, err)
	must.Check(t, reflect.DeepEqual(after.Object, defaulted.Object), "got %v", after.Object)
	setting := object(`{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"name":"a"},"value":"old","status":{"applied":true}}`)
	after, err = merged(scheme, object(`{"apiVersion":"fairlead.io/v1alpha1","kind":"Setting","metadata":{"name":"a"},"value":"new"}`), setting)
	must.Do(t, err)
	must.Equal(t, after.Object["value"], any("new"))
	must.Equal(t, after.Object["status"] != nil, true)
}

// Text of manifests does not steer a terminal, and JUnit stays well-formed XML.
func TestHostileManifests(t *testing.T) {
	hostile := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: \"a\\e[2J\\u202e<&\", annotations: {\"fairlead.io/volume-network\": \"\\e]0;x\\a\"}}\n"
	for _, output := range []string{cli.OutputTable, cli.OutputJSON, outputJUnit} {
		clitest.CheckPrinted(t, run(t, cli.ExitWrong, hostile, "-f", "-", "-o", output))
	}
}
