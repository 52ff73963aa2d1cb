package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/admission"
)

var storageNet = objects.Network("storage-net", "lhnet1")

const (
	clientPodsPath     = "/mutate/longhorn/client-pods"
	clientTemplatePath = "/mutate/longhorn/client-template"
	serverPodsPath     = "/mutate/longhorn/server-pods"
	servicesPath       = "/mutate/longhorn/services"
	shareManagersPath  = "/mutate/longhorn/sharemanagers"
	settingStatusPath  = "/mutate/longhorn/setting-status"
	settingsPath       = "/validate/longhorn/settings"
	deletionsPath      = "/validate/longhorn/instance-manager-deletions"
)

// onNetwork is a cluster whose clients and servers are recorded on storageNet.
func onNetwork(more ...client.Object) []client.Object {
	return append([]client.Object{objects.Record(storageNet), network("kube-system", "storage-net"), network("kube-system", "backup-net")}, more...)
}

// networkSettings are settings by which storageNet is the network for RWX volumes.
func networkSettings() []client.Object {
	return []client.Object{objects.LonghornSetting("storage-network", "kube-system/storage-net"), objects.LonghornSetting("storage-network-for-rwx-volume-enabled", "true")}
}

func network(namespace, name string) client.Object {
	var u unstructured.Unstructured
	u.SetGroupVersionKind(reads.NetworkKind)
	u.SetNamespace(namespace)
	u.SetName(name)
	return &u
}

func clientPod(name string) *corev1.Pod {
	pod := objects.Pod("longhorn-system", name, "")
	pod.Labels = map[string]string{"app": "longhorn-csi-plugin"}
	return objects.With(pod, objects.OwnedBy[*corev1.Pod]("apps/v1", "DaemonSet", "longhorn-csi-plugin"))
}

func clientDaemonSet() client.Object {
	return &appsv1.DaemonSet{ObjectMeta: objects.Here("longhorn-csi-plugin")}
}

// attachedVolume is used by pod default/web-0.
func attachedVolume(name string) client.Object {
	return objects.LonghornVolume(name, "node-1", objects.RWX, func(v *longhorn.Volume) {
		v.Status.KubernetesStatus = longhorn.KubernetesStatus{Namespace: "default", WorkloadsStatus: []longhorn.WorkloadStatus{{PodName: "web-0"}}}
	})
}

func onClusterIP(s *corev1.Service) { s.Spec.ClusterIP = "10.43.0.9" }

func fakeClient(t testing.TB, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme, err := reads.NewScheme()
	must.Do(t, err)
	scheme.AddKnownTypeWithName(reads.NetworkKind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(reads.NetworkKind.GroupVersion().WithKind(reads.NetworkKind.Kind+"List"), &unstructured.UnstructuredList{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

var errDown = errors.New("the API server is down")

// unreadable has kinds, by Go type, that cannot be read. Without kinds, nothing can be read.
func unreadable(c client.WithWatch, kinds ...*string) client.WithWatch {
	broken := func(o any) bool {
		return len(kinds) == 0 || slices.ContainsFunc(kinds, func(k *string) bool { return *k == fmt.Sprintf("%T", o) })
	}
	return failing{c, interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if broken(o) {
				return errDown
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
			if broken(o) {
				return errDown
			}
			return c.List(ctx, o, options...)
		},
	})}
}

// failing is a client whose watches began before its reads failed.
type failing struct {
	watched client.WithWatch
	client.WithWatch
}

// rig is the router over a cluster that is not there.
type rig struct {
	http.Handler
	panics *atomic.Int32
}

func newRig(t testing.TB, live client.Reader, change ...func(*Longhorn)) rig {
	t.Helper()
	c, err := config.Load("")
	must.Do(t, err)
	reader := reads.NewReader(objects.Longhorn, live, live)
	l := NewLonghorn(c, reader)
	l.Names = objects.Longhorn
	for _, f := range change {
		f(l)
	}
	panics := &atomic.Int32{}
	log := slog.New(panicCounter{slog.NewTextHandler(io.Discard, nil), panics})
	return rig{NewRouter(l, newFencing(t, live), newNFS(live), admission.NewMetrics(prometheus.NewRegistry()), log), panics}
}

// newFencing protects Rook-Ceph's volumes; alice may override gates.
func newFencing(t testing.TB, live client.Reader) *Fencing {
	t.Helper()
	watched, ok := live.(client.WithWatch)
	if f, fails := live.(failing); fails {
		watched = f.watched
	} else if !ok {
		watched = fakeClient(t) // of tests without fencing
	}
	holders := fencingreads.NewHolderReader(live, fencingreads.NewHoldings(watched, profiles.RookCeph().Serves))
	go func() { _ = holders.Held.Start(t.Context()) }()
	for !holders.Held.Synced() {
		time.Sleep(time.Millisecond)
	}
	c, err := config.Parse([]byte("apiVersion: config.fairlead.io/v1alpha1\nkind: Configuration\nfencing: {profiles: [{name: rook-ceph}]}"))
	must.Do(t, err)
	return &Fencing{
		Fencing: c.Fencing, Live: holders, Draining: func() bool { return false },
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

// post sends a body and returns the status and the answer.
func (h rig) post(path, body string) (int, string) {
	response := reviews.Send(h, path, body)
	return response.Code, response.Body.String()
}

// ask sends a review that must be answered.
func (h rig) ask(t testing.TB, path, review string) admissionv1.AdmissionResponse {
	t.Helper()
	return reviews.Ask(t, h, path, review)
}

func podReview(object string) string {
	return reviews.Of(reviews.Pod, `"resource":{"group":"","version":"v1","resource":"pods"},"namespace":"longhorn-system","operation":"CREATE","object":`+object)
}

func settingReview(kind, operation, name, object string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(kind, `{"group":"`), `"`)
	return reviews.Of(kind, fmt.Sprintf(`"resource":{"group":%q,"version":"v1","resource":"settings"},"namespace":"longhorn-system","name":%q,"operation":%q,"object":%s`, group, name, operation, object))
}

// newRoutes serves the rules of fencing alone.
func newRoutes(f *Fencing) rig {
	return rig{Handler: NewRouter(nil, f, nil, admission.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))}
}
