package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/fencing"
	"github.com/fairlead-io/fairlead/internal/cluster/longhorn"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

var storageNet = storage.Attachment{Network: storage.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}

const (
	clientPodsPath    = "/mutate/longhorn/client-pods"
	settingStatusPath = "/mutate/longhorn/setting-status"
	deletionsPath     = "/validate/longhorn/instance-manager-deletions"
	podKind           = `{"group":"","version":"v1","kind":"Pod"}`
	serviceKind       = `{"group":"","version":"v1","kind":"Service"}`
	daemonSetKind     = `{"group":"apps","version":"v1","kind":"DaemonSet"}`
	shareKind         = `{"group":"longhorn.io","version":"v1beta2","kind":"ShareManager"}`
	settingKind       = `{"group":"longhorn.io","version":"v1beta2","kind":"Setting"}`
	ownKind           = `{"group":"fairlead.io","version":"v1alpha1","kind":"Setting"}`
	attachmentKind    = `{"group":"storage.k8s.io","version":"v1","kind":"VolumeAttachment"}`
	nodeKind          = `{"group":"","version":"v1","kind":"Node"}`
	nodeFenceKind     = `{"group":"fairlead.io","version":"v1alpha1","kind":"NodeFence"}`
	claimKind         = `{"group":"","version":"v1","kind":"PersistentVolumeClaim"}`
	networkKind       = `{"group":"k8s.cni.cncf.io","version":"v1","kind":"NetworkAttachmentDefinition"}`
)

// onNetwork is a cluster whose clients and servers are recorded on storageNet.
func onNetwork() []client.Object {
	return []client.Object{
		&v1alpha1.NetworkRollout{
			ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: "longhorn"},
			Status: v1alpha1.NetworkRolloutStatus{
				Recorded: true,
				Clients:  v1alpha1.ClientsRollout{Network: storageNet.String()},
				Servers:  v1alpha1.ServersRollout{Network: storageNet.String()},
			},
		},
		network("kube-system", "storage-net"), network("kube-system", "backup-net"),
	}
}

func network(namespace, name string) client.Object {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(cluster.NetworkKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return &u
}

// setting of the storage system.
func setting(name, value string) client.Object {
	return &longhorn.Setting{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: name}, Value: value}
}

func clientPod(name string) client.Object {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: name, Labels: map[string]string{"app": "longhorn-csi-plugin"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "longhorn-csi-plugin", Controller: ptr.To(true)}}}}
}

func attachedVolume(name, node, workload string) client.Object {
	return &longhorn.Volume{
		ObjectMeta: metav1.ObjectMeta{Namespace: "longhorn-system", Name: name},
		Spec:       longhorn.VolumeSpec{AccessMode: "rwx"},
		Status: longhorn.VolumeStatus{State: "attached", CurrentNodeID: node, KubernetesStatus: longhorn.KubernetesStatus{
			Namespace: "default", WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: workload}},
		}},
	}
}

func fakeClient(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(cluster.NetworkKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(cluster.NetworkKind.GroupVersion().WithKind(cluster.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)
	for _, index := range fencing.HolderIndexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Keys)
	}
	return builder.Build()
}

// rig is the router over a cluster that is not there.
type rig struct {
	http.Handler
	panics *atomic.Int32
}

func newRig(t testing.TB, live client.Reader, change ...func(*config.Configuration, *Profile)) rig {
	t.Helper()
	c, err := config.Load("")
	if err != nil {
		t.Fatal(err)
	}
	p := Profile{
		Profile: storage.Longhorn(), Duties: c.Profiles[0].Duties,
		Record: func() rollout.Record { return rollout.Record{Clients: storageNet, Servers: storageNet} },
		Live:   cluster.NewReader(storage.Longhorn(), live, live),
	}
	for _, f := range change {
		f(c, &p)
	}
	panics := &atomic.Int32{}
	log := slog.New(panicCounter{slog.NewTextHandler(io.Discard, nil), panics})
	return rig{NewRouter(c, []Profile{p}, newFencing(t, live), newNFS(live), NewMetrics(prometheus.NewRegistry()), log), panics}
}

// newFencing protects Rook-Ceph's volumes; alice may override gates.
func newFencing(t testing.TB, live client.Reader) *Fencing {
	t.Helper()
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nfencing: {profiles: [{name: rook-ceph}]}"))
	if err != nil {
		t.Fatal(err)
	}
	return &Fencing{
		Fencing: c.Fencing, Live: fencing.NewHolderReader(live, live), Draining: func() bool { return false },
		MayOverride: func(_ context.Context, user authenticationv1.UserInfo, _ string) (bool, error) {
			return user.Username == "alice", nil
		},
	}
}

// panicCounter counts the panics that the router logs.
type panicCounter struct {
	slog.Handler
	panics *atomic.Int32
}

func (h panicCounter) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "panic" {
		h.panics.Add(1)
	}
	return h.Handler.Handle(ctx, r)
}

func (h panicCounter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return panicCounter{h.Handler.WithAttrs(attrs), h.panics}
}

// post sends a body and returns the status and what came back.
func (h rig) post(path, body string) (int, string) {
	request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	response := httptest.NewRecorder()
	h.ServeHTTP(response, request)
	return response.Code, response.Body.String()
}

// ask sends a review that must be answered.
func (h rig) ask(t testing.TB, path, review string) admissionv1.AdmissionResponse {
	t.Helper()
	status, body := h.post(path, review)
	if status != http.StatusOK {
		t.Fatalf("status %d: %s", status, body)
	}
	return answer(t, body)
}

// answer reads a review as strictly as can be.
func answer(t testing.TB, body string) admissionv1.AdmissionResponse {
	t.Helper()
	var review admissionv1.AdmissionReview
	decoder := json.NewDecoder(strings.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&review); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if review.APIVersion != "admission.k8s.io/v1" || review.Kind != "AdmissionReview" || review.Response == nil || review.Request != nil {
		t.Fatalf("not an answer: %s", body)
	}
	if review.Response.Patch != nil {
		var patch []map[string]any
		if err := json.Unmarshal(review.Response.Patch, &patch); err != nil || len(patch) == 0 {
			t.Fatalf("patch %s: %v", review.Response.Patch, err)
		}
		if review.Response.PatchType == nil || *review.Response.PatchType != admissionv1.PatchTypeJSONPatch {
			t.Fatalf("a patch of type %v", review.Response.PatchType)
		}
	} else if review.Response.PatchType != nil {
		t.Fatalf("a patchType and no patch: %s", body)
	}
	return *review.Response
}

// reviewOf writes a review; fields go into the request beside uid and kind.
func reviewOf(kind, fields string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"the-uid","kind":%s,%s}}`, kind, fields)
}

func podReview(object string) string {
	return reviewOf(podKind, `"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"longhorn-system","operation":"CREATE","object":`+object)
}

func settingReview(kind, operation, name, object string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(kind, `{"group":"`), `"`)
	return reviewOf(kind, fmt.Sprintf(`"resource":{"group":%q,"version":"v1","resource":"settings"},"namespace":"longhorn-system","name":%q,"operation":%q,"object":%s`, group, name, operation, object))
}

func compact(t testing.TB, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func newMux() chi.Router { return chi.NewRouter() }

func newTestMetrics() *Metrics { return NewMetrics(prometheus.NewRegistry()) }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
