package attach

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 60, 60) }

const driver = csi.DefaultDriver

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pool = types.NamespacedName{Namespace: "storage", Name: "pool"}
)

type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is an API server with one NFSService, and the attachers that work on it.
type world struct {
	tester
	*fakeapi.API
	drivers map[string]Driver
}

// leader is one process.
type leader struct {
	*world
	client    *fakeapi.Client
	pools     *pools.Pools
	observer  *pools.Observer
	r         *Reconciler
	publisher *Publisher
	annotator *Annotator
}

func newWorld(t tester, service *v1alpha1.NFSService, nodes int) *world {
	t.Helper()
	scheme, err := cluster.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{tester: t, drivers: map[string]Driver{driver: {Service: pool}}, API: fakeapi.New(scheme, []fakeapi.Index{
		{Object: &corev1.PersistentVolume{}, Field: VolumeIndex, Keys: VolumeKeys}, {Object: &storagev1.CSINode{}, Field: NodeIndex, Keys: NodeKeys},
	}, &v1alpha1.NFSService{})}
	status := service.Status
	w.must(w.Create(context.Background(), service))
	service.Status = status
	w.must(w.Status().Update(context.Background(), service))
	for i := range nodes {
		w.node(fmt.Sprintf("n%d", i))
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// serviceOf has healthy servers 10.0.0.1 to 10.0.0.n.
func serviceOf(servers int) *v1alpha1.NFSService {
	s := &v1alpha1.NFSService{ObjectMeta: metav1.ObjectMeta{Namespace: pool.Namespace, Name: pool.Name}, Spec: v1alpha1.NFSServiceSpec{Exposure: "PerNode", Port: 2049}}
	for i := range servers {
		s.Status.Backends = append(s.Status.Backends, v1alpha1.NFSBackendStatus{Address: fmt.Sprintf("10.0.0.%d:2049", i+1), Health: "Healthy", Weight: 1})
	}
	return s
}

func (w *world) node(name string, annotations ...string) {
	w.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}}}
	for i := 0; i < len(annotations); i += 2 {
		n.Annotations[annotations[i]] = annotations[i+1]
	}
	w.must(w.Create(context.Background(), n))
}

// volume creates a PersistentVolume. Without service it names none.
func (w *world) volume(name, handle string, service ...string) {
	w.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, VolumeAttributes: map[string]string{"share": "/exports"}}
	for _, s := range service {
		pv.Spec.CSI.VolumeAttributes["service"] = s
	}
	w.must(w.Create(context.Background(), pv))
}

// request creates a VolumeAttachment, as the attach-detach controller does.
func (w *world) request(pv, node string) string {
	w.Helper()
	name := attachmentName(driver, pv, node)
	w.must(w.Create(context.Background(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(pv)}},
	}))
	return name
}

func (w *world) attachment(name string) *storagev1.VolumeAttachment {
	w.Helper()
	var va storagev1.VolumeAttachment
	w.must(w.Get(context.Background(), client.ObjectKey{Name: name}, &va))
	return &va
}

func (w *world) attachments() []storagev1.VolumeAttachment {
	w.Helper()
	var list storagev1.VolumeAttachmentList
	w.must(w.List(context.Background(), &list))
	return list.Items
}

// health changes what status says of a server.
func (w *world) health(address, health string) {
	w.Helper()
	var s v1alpha1.NFSService
	w.must(w.Get(context.Background(), pool, &s))
	for i := range s.Status.Backends {
		if s.Status.Backends[i].Address == address+":2049" {
			s.Status.Backends[i].Health = health
		}
	}
	w.must(w.Status().Update(context.Background(), &s))
}

type reader struct {
	client.Reader
	cache.Informers
}

// leader starts a process, which knows nothing but what the API server has.
func (w *world) leader() *leader {
	w.Helper()
	l := &leader{world: w, client: w.API.Client(), pools: pools.New()}
	log := slog.New(slog.DiscardHandler)
	assigner := &Assigner{Cached: l.client, Live: w.API, Pools: l.pools, Drivers: w.drivers}
	l.observer = &pools.Observer{Pools: l.pools, Drivers: Services(w.drivers), Cache: reader{Reader: l.client}, Log: log}
	l.r = &Reconciler{Assigner: assigner, Client: l.client, Clock: clocktesting.NewFakePassiveClock(noon), Log: log}
	l.publisher = &Publisher{Assigner: assigner}
	l.annotator = &Annotator{Client: l.client, Pools: l.pools, Drivers: w.drivers, Log: log}
	l.catchUp()
	return l
}

// catchUp lets the caches of a process see everything.
func (l *leader) catchUp() {
	l.Helper()
	if l.client.Cache != nil {
		l.client.Cache.Release()
	}
	var services v1alpha1.NFSServiceList
	l.must(l.List(context.Background(), &services))
	for i := range services.Items {
		l.pools.SetService(&services.Items[i])
	}
	l.must(l.pools.Rebuild(func() ([]pools.Attachment, error) { return l.observer.Attachments(context.Background()) }))
}

// settle reconciles a VolumeAttachment until nothing is asked for at once.
func (l *leader) settle(name string) {
	l.Helper()
	for range 20 {
		result, err := l.r.Reconcile(context.Background(), request(name))
		l.must(err)
		if result.RequeueAfter != settle {
			return
		}
	}
	l.Fatalf("the passes for %s do not end", name)
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

// attach makes and settles an attachment, and returns its address.
func (l *leader) attach(pv, node string) string {
	l.Helper()
	name := l.request(pv, node)
	l.settle(name)
	return pools.AddressOf(l.attachment(name))
}

// detach deletes an attachment, and settles it.
func (l *leader) detach(pv, node string) {
	l.Helper()
	name := attachmentName(driver, pv, node)
	l.must(l.Delete(context.Background(), l.attachment(name)))
	l.settle(name)
}

// loads are the numbers of nodes by server, sorted.
func (l *leader) loads() []int {
	var loads []int
	for _, load := range l.pools.Summary(pool, false).Loads {
		loads = append(loads, load.Nodes)
	}
	slices.Sort(loads)
	return loads
}
