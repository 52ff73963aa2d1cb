package attach

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/controllers/nfs/pools"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/assign"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/nfsreads"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
)

func TestMain(m *testing.M) { fixedruns.Main(m, 60, 60) }

const driver = csi.DefaultDriver

var pool = types.NamespacedName{Namespace: "storage", Name: "pool"}

// world is an API server with one NFSService, and the attachers that work on it.
type world struct {
	*testkit.Bench
	drivers     nfsreads.Drivers
	annotations map[string]config.NodeAnnotations
}

type leader struct {
	*world
	client    *fakeapi.Client
	pools     *pools.Pools
	observer  *pools.Observer
	seen      map[types.UID]string
	r         *Reconciler
	annotator *Annotator
	volumes   *VolumeReleaser
}

func newWorld(t testkit.TB, service *v1alpha1.NFSService, nodes int) *world {
	t.Helper()
	api := fakeapi.New(testkit.Value[*runtime.Scheme](t)(reads.NewScheme()), []fakeapi.Index{{Object: &corev1.PersistentVolume{}, Field: VolumeIndex, Keys: VolumeKeys}}, &v1alpha1.NFSService{})
	w := &world{Bench: testkit.NewBench(t, api, service), drivers: nfsreads.Drivers{driver: pool}, annotations: map[string]config.NodeAnnotations{}}
	for i := range nodes {
		w.node(fmt.Sprintf("n%d", i))
	}
	return w
}

// attaching is a leader with one volume pv, whose handle is its name.
func attaching(t testkit.TB, service *v1alpha1.NFSService, nodes int) (*world, *leader) {
	t.Helper()
	w := newWorld(t, service, nodes)
	w.volume("pv", "pv")
	return w, w.leader()
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
	w.Must(w.Create(context.Background(), n))
}

func (w *world) getNode(name string) *corev1.Node {
	w.Helper()
	return testkit.Get[corev1.Node](w, w.API, "", name)
}

func (w *world) deleteNode(name string) {
	w.Helper()
	w.Must(w.Delete(context.Background(), w.getNode(name)))
}

// volume creates a PersistentVolume. Without service it names none.
func (w *world) volume(name, handle string, service ...string) {
	w.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle, VolumeAttributes: map[string]string{"share": "/exports"}}
	for _, s := range service {
		pv.Spec.CSI.VolumeAttributes["service"] = s
	}
	w.Must(w.Create(context.Background(), pv))
}

// attachmentName is the name that Kubernetes gives (pkg/volume/csi/csi_attacher.go: getAttachmentName).
func attachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// request creates a VolumeAttachment, as the attach-detach controller does.
func (w *world) request(pv, node string) string {
	w.Helper()
	name := attachmentName(driver, pv, node)
	w.Must(w.Create(context.Background(), objects.Attachment(pv, node, driver, func(va *storagev1.VolumeAttachment) { va.Name = name })))
	return name
}

func (w *world) attachment(name string) *storagev1.VolumeAttachment {
	w.Helper()
	return testkit.Get[storagev1.VolumeAttachment](w, w.API, "", name)
}

func (w *world) attachments() []storagev1.VolumeAttachment {
	w.Helper()
	var list storagev1.VolumeAttachmentList
	w.Must(w.List(context.Background(), &list))
	return list.Items
}

func (w *world) health(address, health string) {
	w.Helper()
	testkit.Change(w.Bench, pool.Namespace, pool.Name, func(s *v1alpha1.NFSService) {
		for i := range s.Status.Backends {
			if s.Status.Backends[i].Address == address+":2049" {
				s.Status.Backends[i].Health = health
			}
		}
	})
}

type reader struct {
	client.Reader
	cache.Informers
}

func (w *world) leader() *leader {
	w.Helper()
	l := &leader{world: w, client: w.API.Client(), pools: pools.New()}
	l.observer = pools.NewObserver(l.pools, w.drivers, reader{Reader: l.client}, w.Log)
	l.r = &Reconciler{Client: l.client, Live: w.API, Pools: l.pools, Drivers: w.drivers, Annotations: w.annotations, Clock: w.Clock, Log: w.Log}
	l.annotator = &Annotator{Client: l.client, Pools: l.pools, Drivers: w.drivers, Annotations: w.annotations, Log: w.Log}
	l.volumes = &VolumeReleaser{Client: l.client, Drivers: w.drivers}
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
	l.Must(l.List(context.Background(), &services))
	for i := range services.Items {
		l.pools.SetService(&services.Items[i])
	}
	var attachments storagev1.VolumeAttachmentList
	l.Must(l.client.List(context.Background(), &attachments))
	gone := l.seen
	l.seen = map[types.UID]string{}
	for i := range attachments.Items {
		l.observer.Observe(context.Background(), &attachments.Items[i])
		l.seen[attachments.Items[i].UID] = attachments.Items[i].Spec.NodeName
	}
	for uid, node := range gone {
		if _, ok := l.seen[uid]; !ok {
			l.pools.Detach(node, string(uid))
		}
	}
}

// settle reconciles a VolumeAttachment until nothing is asked for at once.
func (l *leader) settle(name string) {
	l.Helper()
	for range 20 {
		result, err := l.r.Reconcile(context.Background(), request(name))
		l.Must(err)
		if result.RequeueAfter != settle {
			return
		}
	}
	l.Fatalf("the passes for %s do not end", name)
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
}

func (l *leader) attach(pv, node string) string {
	l.Helper()
	name := l.request(pv, node)
	l.settle(name)
	return nfsreads.AddressOf(l.attachment(name))
}

func (l *leader) detach(pv, node string) {
	l.Helper()
	name := attachmentName(driver, pv, node)
	l.Must(l.Delete(context.Background(), l.attachment(name)))
	l.settle(name)
}

// loads are the numbers of nodes by server, sorted.
func (l *leader) loads() []int {
	var loads []int
	l.pools.View(pool, func(p *assign.Pool) {
		for _, load := range p.Loads() {
			loads = append(loads, load.Nodes)
		}
	})
	slices.Sort(loads)
	return loads
}

// nodesOf are the nodes of the service.
func (l *leader) nodesOf() (nodes map[string]assign.Placement) {
	l.pools.View(pool, func(p *assign.Pool) { nodes = p.Nodes() })
	return nodes
}

func (l *leader) placement(node string) (assign.Placement, bool) {
	at, ok := l.nodesOf()[node]
	return at, ok
}
