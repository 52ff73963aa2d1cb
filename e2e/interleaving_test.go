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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/e2e/sandbox/standin"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
)

// seedVariable repeats a random run.
const seedVariable = "FAIRLEAD_SEED"

// TestInvariantsHoldWhateverComes is a short form of the property test in package settings, on the real control plane:
// settings change, volumes attach and detach, and the controller is killed, in random order. A watch sees every restart.
func TestInvariantsHoldWhateverComes(t *testing.T) {
	// One controller at a time needs no lease, which a killed leader would keep for some seconds.
	// Longhorn builds by the value of its own setting, and also applies the setting itself.
	c := newCluster(t, options{webhooks: 2, controllers: 1, controllerArgs: []string{"--leader-elect=false"}, longhorn: "v1.12.0", syncs: true})
	seed := uint64(time.Now().UnixNano())
	if again := os.Getenv(seedVariable); again != "" {
		_, err := fmt.Sscan(again, &seed)
		c.must(err)
	}
	t.Logf("to repeat: %s=%d", seedVariable, seed)
	chance := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's dice
	volumes := []string{"pvc-a", "pvc-b", "pvc-c"}
	for _, v := range volumes {
		c.must(c.Longhorn().CreateVolume(t.Context(), standin.Volume{Name: v, Shared: true}))
	}
	guard := c.watchRestarts()
	attached := map[string]bool{}
	controllers := 1
	// A change under an attached volume is rare in random order.
	c.attach("pvc-a", "node-1")
	attached["pvc-a"] = true
	time.Sleep(2 * time.Second) // the guard compares times of the API, which have no fractions
	c.set(system, string(catalog.EndpointNetworkForRWX), netA)
	time.Sleep(2 * time.Second) // nothing announces that no restart follows
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
		default: // a random step of the rollout
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

// attach creates Kubernetes' attachment first, as Kubernetes does, and then Longhorn's.
func (c *cluster) attach(volume, node string) {
	c.t.Helper()
	c.must(c.create(&storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: longhorn.DefaultNames().Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To(volume)},
		},
	}))
	c.must(c.Longhorn().Attach(c.t.Context(), volume, node))
}

func (c *cluster) detach(volume string) {
	c.t.Helper()
	c.must(c.Longhorn().Detach(c.t.Context(), volume))
	c.delete(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-" + volume}})
}

// checkInvariants checks invariants 1 and 2. Servers are read before clients: clients must be on a server's network first.
func (c *cluster) checkInvariants() {
	c.t.Helper()
	servers := c.pods(longhorn.DefaultNames().ServerLabels)
	clients := c.clients()
	for _, server := range servers {
		network := c.requested(&server)
		volume := server.Labels[longhorn.DefaultNames().VolumeLabel]
		var service corev1.Service
		err := c.Client.Get(c.t.Context(), key(volume), &service)
		c.must(client.IgnoreNotFound(err))
		headless := service.Spec.ClusterIP == "None"
		// A repair deletes the Service before its server, so a missing Service is no violation, nor is a new Service
		// of a server that was deleted since the list.
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

// stillThere reports whether a listed pod exists and is not being deleted.
func (c *cluster) stillThere(listed *corev1.Pod) bool {
	c.t.Helper()
	var pod corev1.Pod
	err := c.Client.Get(c.t.Context(), client.ObjectKeyFromObject(listed), &pod)
	c.must(client.IgnoreNotFound(err))
	return err == nil && pod.UID == listed.UID && pod.DeletionTimestamp == nil
}

// restartGuard watches deletions of client pods, and what was attached on their nodes.
type restartGuard struct {
	cancel   context.CancelFunc
	done     sync.WaitGroup
	mu       sync.Mutex
	seen     int
	problems []hurt
	probe    *probe
}

// hurt is an attachment on the node of a deleted pod, older than the deletion by so long.
type hurt struct {
	by   time.Duration
	text string
}

func (c *cluster) watchRestarts() *restartGuard {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	pods, err := c.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace), client.MatchingLabels(longhorn.DefaultNames().ClientLabels))
	c.must(err)
	g := &restartGuard{cancel: cancel, probe: c.startProbe()}
	c.t.Cleanup(cancel)
	g.done.Go(func() {
		var seen []types.UID
		for event := range pods.ResultChan() {
			pod, ok := event.Object.(*corev1.Pod)
			if !ok || (event.Type == watch.Modified && pod.DeletionTimestamp == nil) || event.Type == watch.Added || slices.Contains(seen, pod.UID) {
				continue
			}
			seen = append(seen, pod.UID)
			g.note(c.hurt(ctx, pod)...)
		}
	})
	return g
}

// hurt returns the attachments that a deletion hurt.
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

// deleted returns when the deletion was requested: the timestamp includes the grace period.
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
		// Times have a resolution of a second, and the controller sees the attachment no sooner than a bare watch.
		if p.by > time.Second+meanwhile.slowest {
			t.Error(p.text)
		}
	}
	if g.seen == 0 {
		t.Error("no restart was seen")
	}
}
