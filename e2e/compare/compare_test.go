package compare

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	normalise(o)
	return o
}

const endpoints = `
kind: Endpoints
metadata:
  name: pvc-1
  uid: 0a1b2c3d-0000-1111-2222-333344445555
  resourceVersion: "7"
  ownerReferences: [{kind: ShareManager, name: pvc-1, uid: 0a1b2c3d-0000-1111-2222-333344445555, controller: false}]
subsets:
- addresses: [{ip: ADDRESS, nodeName: node-1}]
  ports: [{name: nfs, port: 2049}]
`

func TestIdentitiesAndAddressesAreNormalised(t *testing.T) {
	one := object(t, strings.ReplaceAll(endpoints, "ADDRESS", "192.168.50.7"))
	other := object(t, strings.ReplaceAll(strings.ReplaceAll(endpoints, "ADDRESS", "192.168.50.9"), "0a1b", "ffff"))
	if lines := differences(one, other); len(lines) > 0 {
		t.Errorf("they differ: %v", lines)
	}
}

func TestAddressesOfNetworksDiffer(t *testing.T) {
	storage := object(t, strings.ReplaceAll(endpoints, "ADDRESS", "192.168.50.7"))
	pod := object(t, strings.ReplaceAll(endpoints, "ADDRESS", "10.244.1.7"))
	want := "Endpoints pvc-1: subsets[0].addresses[0].ip: recorded (storage-net address), found (pod address)"
	if lines := differences(storage, pod); len(lines) != 1 || lines[0] != want {
		t.Errorf("got  %v\nwant %s", lines, want)
	}
}

func TestMissingObjectsAndFieldsAreReported(t *testing.T) {
	a := []*unstructured.Unstructured{object(t, "{kind: Service, metadata: {name: a}, spec: {clusterIP: None}}"), object(t, "{kind: Service, metadata: {name: b}}")}
	b := []*unstructured.Unstructured{object(t, "{kind: Service, metadata: {name: a}, spec: {selector: {x: z}}}"), object(t, "{kind: Pod, metadata: {name: c}}")}
	got := strings.Join(Differences(a, b), "\n")
	want := strings.Join([]string{
		"Pod c: not recorded",
		"Service a: spec.clusterIP: recorded None, found nothing",
		"Service a: spec.selector: recorded nothing, found map[x:z]",
		"Service b: missing",
	}, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStepsAreReadAsWritten(t *testing.T) {
	a := object(t, "{kind: Service, metadata: {name: a}, spec: {ports: [{port: 2049}]}}")
	changed := object(t, "{kind: Service, metadata: {name: a}, spec: {ports: [{port: 2050}]}}")
	b := object(t, "{kind: Service, metadata: {name: b}}")
	steps := []Step{
		{Name: "1", Objects: []*unstructured.Unstructured{a, b}, Writes: map[string]any{"a": []any{"create services/a"}}},
		{Name: "2", Objects: []*unstructured.Unstructured{changed}}, {Name: "3", Objects: []*unstructured.Unstructured{changed, b}},
	}
	folder := t.TempDir()
	if err := Write(folder, steps); err != nil {
		t.Fatal(err)
	}
	read, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	if text := Compare(steps, read); text != "" {
		t.Error(text)
	}
	want := "2: Service a: spec.ports[0].port: recorded 2050, found 2049\n"
	read[1].Objects[0] = a
	if text := Compare(steps, read); text != want {
		t.Errorf("got %s want %s", text, want)
	}
	had := object(t, strings.ReplaceAll(endpoints, "ADDRESS", "192.168.50.7"))
	gone := object(t, "{kind: Endpoints, metadata: {name: pvc-1}}")
	if text := Compare([]Step{{Objects: []*unstructured.Unstructured{had}}}, []Step{{Objects: []*unstructured.Unstructured{gone}}}); text != "" {
		t.Errorf("a raced difference is reported: %s", text)
	}
}

func differences(a, b *unstructured.Unstructured) []string {
	return Differences([]*unstructured.Unstructured{a}, []*unstructured.Unstructured{b})
}

func TestWritesOfLonghornAreOrderedByLane(t *testing.T) {
	const manager = "system:serviceaccount:longhorn-system:longhorn-service-account"
	write := func(user, verb, resource, name string, changed bool) sandbox.Write {
		return sandbox.Write{
			User: user, Verb: verb, Resource: resource, Namespace: "longhorn-system", Name: name, Changed: changed,
			Response: []byte(`{"status":{"applied":true}}`),
		}
	}
	got := order([]sandbox.Write{
		write(manager, "delete", "services", "pvc-1", true), write("admin", "update", "services", "pvc-1", true),
		write(manager, "patch", "settings/status", "storage-network", true), write(manager, "create", "services", "pvc-1", true),
		write(manager, "update", "daemonsets", "longhorn-csi-plugin", false), write(manager, "create", "pods", "share-manager-pvc-1", true),
		write(manager, "create", "pods", "instance-manager-1", true),
	}, "longhorn-system")
	want := map[string]any{
		"pvc-1":    []any{"delete services/pvc-1", "create services/pvc-1", "create pods/share-manager-pvc-1"},
		"settings": []any{"update settings/status/storage-network applied=true"},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
