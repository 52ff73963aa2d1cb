package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// seedVariable names the dice of a run that is to be repeated.
const seedVariable = "FAIRLEAD_SEED"

// TestInvariantsHoldWhateverComes is the short form, on the real control plane,
// of the property test in package settings: settings change, volumes attach and
// detach and the controller is killed, in an order that chance decides. Watches,
// not samples, look out for a restart that hurts.
func TestInvariantsHoldWhateverComes(t *testing.T) {
	// Without the lease, which a killed leader leaves for some seconds: there is only one at a time.
	// Longhorn builds by the value of its own setting, and applies it itself too.
	c := newCluster(t, options{webhooks: 2, controllers: 1, controllerArgs: []string{"--leader-elect=false"}, longhorn: "v1.12.0", syncs: true})
	seed := uint64(time.Now().UnixNano())
	if again := os.Getenv(seedVariable); again != "" {
		_, err := fmt.Sscan(again, &seed)
		c.must(err)
	}
	t.Logf("the same steps again: %s=%d", seedVariable, seed)
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's dice
	volumes := []string{"pvc-a", "pvc-b", "pvc-c"}
	for _, v := range volumes {
		c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: v, Shared: true}))
	}
	guard := c.watchRestarts()
	attached := map[string]bool{}
	controllers := 1
	// Chance seldom comes to what must be refused most: a change while a volume is attached.
	c.attach("pvc-a", "node-1")
	attached["pvc-a"] = true
	time.Sleep(2 * time.Second) // older than the guard's resolution
	c.set(system, string(catalog.EndpointNetworkForRWX), netA)
	time.Sleep(2 * time.Second)
	end := time.Now().Add(60 * time.Second)
	for steps := 0; time.Now().Before(end); steps++ {
		switch chance.IntN(16) {
		case 0, 1:
			c.set(system, string(catalog.EndpointNetworkForRWX), []string{"", netA, netB}[chance.IntN(3)])
		case 2:
			if v := volumes[chance.IntN(3)]; !attached[v] {
				c.attach(v, c.State.Nodes[chance.IntN(3)])
				attached[v] = true
			}
		case 3, 4, 5:
			if v := volumes[chance.IntN(3)]; attached[v] {
				c.detach(v)
				delete(attached, v)
			}
		case 6, 7:
			c.must(c.Replicas()[len(c.Replicas())-1].Kill())
			_, err := c.StartReplica(t.Context(), sandbox.ControllerDeployment, fmt.Sprintf("controller-%d", controllers))
			c.must(err)
			controllers++
		default: // time for a roll-out to get somewhere
			time.Sleep(time.Duration(chance.IntN(1500)) * time.Millisecond)
		}
		c.checkInvariants()
	}
	for v := range attached {
		c.detach(v)
	}
	c.set(system, string(catalog.EndpointNetworkForRWX), "")
	c.set(system, string(catalog.EndpointNetworkForRWX), netB)
	c.waitApplied(netB + "@lhnet2")
	c.checkInvariants()
	guard.finish(t)
	t.Logf("the controller was killed %d times", controllers-1)
}

// attach has Kubernetes' attachment first, as in life, and then Longhorn's side.
func (c *cluster) attach(volume, node string) {
	c.t.Helper()
	c.must(c.Client.Create(c.t.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: storage.Longhorn().Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)},
		},
	}))
	c.must(c.Longhorn().Attach(c.t.Context(), volume, node))
}

func (c *cluster) detach(volume string) {
	c.t.Helper()
	c.must(c.Longhorn().Detach(c.t.Context(), volume))
	c.must(c.Client.Delete(c.t.Context(), &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume}}))
}

// checkInvariants holds 1 and 2 against the cluster as it is. Servers are read
// before clients: a server that is there now must find its clients there after.
func (c *cluster) checkInvariants() {
	c.t.Helper()
	servers := c.pods(storage.Longhorn().ServerLabels)
	clients := c.clients()
	for _, server := range servers {
		network := c.requested(&server)
		volume := server.Labels[storage.Longhorn().VolumeLabel]
		var service corev1.Service
		err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: namespace, Name: volume}, &service)
		c.must(client.IgnoreNotFound(err))
		headless := service.Spec.ClusterIP == "None"
		// A repair deletes the Service before its server, so no Service is no violation;
		// nor is another one, if the listed server has been deleted since.
		if err == nil && headless == network.IsZero() && c.stillThere(&server) {
			c.t.Errorf("invariant 2: %s: headless %v, server on %q", volume, headless, network)
		}
		for _, pod := range clients {
			if !network.IsZero() && c.requested(&pod) != network {
				c.t.Errorf("invariant 1: server of %s is on %s, client %s on %q", volume, network, pod.Name, c.requested(&pod))
			}
		}
	}
}

// stillThere reports whether a listed pod is there and not being deleted.
func (c *cluster) stillThere(listed *corev1.Pod) bool {
	c.t.Helper()
	var pod corev1.Pod
	err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(listed), &pod)
	c.must(client.IgnoreNotFound(err))
	return err == nil && pod.UID == listed.UID && pod.DeletionTimestamp == nil
}

// restartGuard sees every deletion of a client pod and what was attached on its node.
type restartGuard struct {
	cancel   context.CancelFunc
	done     sync.WaitGroup
	mu       sync.Mutex
	seen     int
	problems []hurt
	probe    *probe
}

// hurt is what a deletion did to an attachment on its node that was there before it, by so long.
type hurt struct {
	by   time.Duration
	text string
}

func (c *cluster) watchRestarts() *restartGuard {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	pods, err := c.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels(storage.Longhorn().ClientLabels))
	c.must(err)
	g := &restartGuard{cancel: cancel, probe: c.startProbe()}
	c.t.Cleanup(cancel)
	g.done.Go(func() {
		var told []string
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || (event.Type == watch.Modified && pod.DeletionTimestamp == nil) || event.Type == watch.Added || slices.Contains(told, string(pod.UID)) {
				continue
			}
			told = append(told, string(pod.UID))
			g.note(c.hurt(ctx, pod)...)
		}
	})
	return g
}

// hurt says what a deletion hurt.
func (c *cluster) hurt(ctx context.Context, pod *corev1.Pod) (all []hurt) {
	var list storagev1.VolumeAttachmentList
	if err := c.Client.List(ctx, &list); err != nil {
		return nil
	}
	for _, va := range list.Items {
		if va.Spec.NodeName == pod.Spec.NodeName && pod.DeletionTimestamp != nil {
			all = append(all, hurt{deleted(pod).Sub(va.CreationTimestamp.Time), fmt.Sprintf("invariant 4: CSI plugin pod %s on %s was deleted at %s, %s was attached there at %s",
				pod.Name, pod.Spec.NodeName, deleted(pod), va.Name, va.CreationTimestamp)})
		}
	}
	return all
}

// deleted is when the deletion was asked for: the timestamp has the grace period added.
func deleted(pod *corev1.Pod) time.Time {
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

func (g *restartGuard) note(problems ...hurt) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.seen++
	g.problems = append(g.problems, problems...)
}

func (g *restartGuard) finish(t *testing.T) {
	t.Helper()
	g.cancel()
	g.done.Wait()
	meanwhile := g.probe.end()
	t.Logf("%d restarts of CSI plugin pods were seen; %s", g.seen, meanwhile)
	for _, p := range g.problems {
		// Times have a second's resolution, and the controller heard of the attachment
		// no sooner than a bare watch would have: only what is surely older counts.
		if p.by > time.Second+meanwhile.slowest {
			t.Error(p.text)
		}
	}
	if g.seen == 0 {
		t.Error("no restart was seen: nothing was tested")
	}
}
