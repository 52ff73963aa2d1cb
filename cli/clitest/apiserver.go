package clitest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/internal/reads"
)

// readAPI serves discovery, gets and lists for the commands that people run. With a refusal, every read is refused.
type readAPI struct {
	scheme  *runtime.Scheme
	objects client.Client
	refusal *metav1.Status
}

// ServeAPI starts a readAPI and returns the address.
func ServeAPI(t *testing.T, refusal *metav1.Status, objects ...client.Object) string {
	t.Helper()
	handler, _, err := API(refusal, objects...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// API returns a readAPI, and a client that changes its objects.
func API(refusal *metav1.Status, objects ...client.Object) (http.Handler, client.Client, error) {
	scheme, err := reads.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	networks := reads.NetworkKind // Multus is installed
	scheme.AddKnownTypeWithName(networks, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(networks.GroupVersion().WithKind(networks.Kind+"List"), &unstructured.UnstructuredList{})
	stored := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	return &readAPI{scheme, stored, refusal}, stored, nil
}

func (a *readAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if path[0] == "api" { // the group without a name
		path = append([]string{"apis", ""}, path[1:]...)
	}
	var body any
	switch {
	case r.URL.Path == "/api":
		body = metav1.APIVersions{Versions: []string{"v1"}}
	case len(path) == 1:
		body = a.groups()
	case len(path) == 3:
		body = a.resources(schema.GroupVersion{Group: path[1], Version: path[2]})
	case a.refusal != nil:
		body = a.refusal
	default:
		body = a.read(r, schema.GroupVersion{Group: path[1], Version: path[2]}, path[3:])
	}
	w.Header().Set("Content-Type", "application/json")
	if status, ok := body.(*metav1.Status); ok {
		w.WriteHeader(int(status.Code))
	}
	_ = json.NewEncoder(w).Encode(body)
}

func (a *readAPI) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	for _, gv := range a.scheme.PrioritizedVersionsAllGroups() {
		if gv.Group != "" {
			version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
	}
	return list
}

func (a *readAPI) resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: gv.String()}
	for kind := range a.scheme.KnownTypes(gv) {
		plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: plural.Resource, Kind: kind, Namespaced: !clusterWide[kind], Verbs: metav1.Verbs{"get", "list"},
		})
	}
	return list
}

var clusterWide = map[string]bool{"Namespace": true, "Node": true, "PersistentVolume": true, "VolumeAttachment": true, "PriorityClass": true, "NodeFence": true, "StorageClass": true, "MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true}

// read gets or lists the rest of the path: [namespaces <namespace>] <resource> [<name>].
func (a *readAPI) read(r *http.Request, gv schema.GroupVersion, path []string) any {
	var key client.ObjectKey
	if len(path) > 2 && path[0] == "namespaces" {
		key.Namespace, path = path[1], path[2:]
	}
	var kind string
	for _, resource := range a.resources(gv).APIResources {
		if resource.Name == path[0] {
			kind = resource.Kind
		}
	}
	if len(path) > 1 {
		key.Name = path[1]
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gv.WithKind(kind))
		if err := a.objects.Get(r.Context(), key, object); err != nil {
			return statusOf(err)
		}
		return object
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gv.WithKind(kind + "List"))
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return statusOf(err)
	}
	if err := a.objects.List(r.Context(), list, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return statusOf(err)
	}
	if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
		list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	}
	if len(list.Items) == 0 {
		list.Items = []unstructured.Unstructured{}
	}
	return list
}

func statusOf(err error) *metav1.Status {
	var refusal apierrors.APIStatus
	status := apierrors.NewInternalError(err).Status()
	if apierrors.IsNotFound(err) {
		refusal, _ = err.(apierrors.APIStatus) //nolint:errorlint // as the fake client returns it
		status = refusal.Status()
	}
	return &status
}

// Kubeconfig writes a kubeconfig file for the server.
func Kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, KubeconfigOf("c", server), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// KubeconfigOf a server, with the name of a context.
func KubeconfigOf(name, server string) []byte {
	return []byte(`{apiVersion: v1, kind: Config, current-context: ` + name + `, contexts: [{name: ` + name + `, context: {cluster: c}}], clusters: [{name: c, cluster: {server: "` + server + `"}}]}`)
}
