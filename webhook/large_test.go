package webhook

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
	"github.com/fairlead-io/fairlead/internal/testkit/fakeapi"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// largeReview is one of those that gather much.
type largeReview struct{ name, path, review, warning string }

func largeReviews() []largeReview {
	return []largeReview{
		{"setting", settingsPath, settingReview(reviews.SystemSetting, "CREATE", "priority-class", `{"metadata":{"name":"priority-class"},"value":"longhorn-critical"}`),
			"accepted; will be applied when these volumes are detached: pvc-00000000"},
		{"tolerations", settingsPath, settingReview(reviews.SystemSetting, "UPDATE", "taint-toleration", `{"metadata":{"name":"taint-toleration"},"value":"key=value:NoSchedule"},"oldObject":{"metadata":{"name":"taint-toleration"},"value":""}`),
			"accepted; will be applied when these volumes are detached: pvc-00000000"},
		{"network of RWX volumes", settingsPath, settingReview(reviews.SystemSetting, "UPDATE", "endpoint-network-for-rwx-volume", `{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":"kube-system/storage-net"},"oldObject":{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":""}`),
			"there is no NetworkAttachmentDefinition kube-system/storage-net"},
		{"network", registration.NetworksPath, reviews.Of(reviews.Network, `"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},"namespace":"team-x","name":"nfs","operation":"DELETE","oldObject":{"metadata":{"name":"nfs"}}`), ""},
		{"annotations", registration.VolumeNetworksPath, reviews.Of(reviews.Claim, `"resource":{"group":"","version":"v1","resource":"persistentvolumeclaims"},"namespace":"default","name":"data-1","operation":"UPDATE",`+
			`"object":{"metadata":{"name":"data-1","namespace":"default","annotations":{"fairlead.io/volume-network":"team-x/nfs"}},"spec":{"accessModes":["ReadWriteMany"],"volumeName":"`+objects.LargeVolume(1)+`","storageClassName":"longhorn"}}`),
			"the change takes effect when the volume is detached: pvc-00000001"},
	}
}

func volumeNetworksOn(p *Longhorn) { p.Duties.VolumeNetworks = config.On }

// ask fails the test where the review did not look at the cluster.
func (l largeReview) ask(t testing.TB, handler rig) {
	t.Helper()
	response := handler.ask(t, l.path, l.review)
	must.True(t, response.Allowed && strings.Contains(fmt.Sprint(response.Warnings), l.warning), "%s: got %+v, %q", l.name, response.Result, response.Warnings)
}

// A list that is not limited grows with the cluster, and the webhook has little memory.
func TestReviewsReadLongListsInPages(t *testing.T) {
	must.HaveTime(t)
	api := &fakeapi.Counting{WithWatch: fakeClient(t, append(objects.Large(1200, 600, 3, 0), clientDaemonSet(), network("team-x", "nfs"))...)}
	handler := newRig(t, lists.NewLive(api), volumeNetworksOn)
	const volumes, attachments, longhornAttachments, persistentVolumes, claims = "list *longhorn.VolumeList", "list *v1.VolumeAttachmentList",
		"list *longhorn.VolumeAttachmentList", "list *v1.PersistentVolumeList", "list *v1.PartialObjectMetadataList"
	unread := map[string][]string{"setting": {longhornAttachments, "list *longhorn.EngineList", "list *longhorn.ReplicaList", persistentVolumes}}
	paged := map[string][]string{"setting": {volumes, attachments}, "network": {persistentVolumes, claims}, "annotations": {volumes, persistentVolumes, claims}}
	for _, review := range largeReviews() {
		api.Requests()
		review.ask(t, handler)
		requests := map[string]int{}
		for _, r := range api.Requests() {
			requests[r]++
		}
		for _, list := range unread[review.name] {
			must.Check(t, requests[list] == 0, "%s: unwanted request: %s", review.name, list)
		}
		for _, list := range paged[review.name] {
			must.Check(t, requests[list] >= 2, "%s: %d requests: %s; pages are not seen", review.name, requests[list], list)
		}
		must.Check(t, api.Unlimited() == nil, "%s: lists without a limit: %v", review.name, api.Unlimited())
	}
}

// counted counts the lists of one kind, which take until hold is closed.
type counted struct {
	client.Reader
	lists atomic.Int32
	hold  chan struct{}
}

func (c *counted) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*longhorn.VolumeList); is {
		c.lists.Add(1)
		<-c.hold
	}
	return c.Reader.List(ctx, list, options...)
}

// Many reviews at once, of a Helm chart or of a caller who floods the port, cost a few reads of the cluster.
// Regression: one anonymous address kept every setting from being changed.
func TestReviewsAtOnceShareReads(t *testing.T) {
	live := &counted{Reader: fakeClient(t, withVolumes(true, nil)...), hold: make(chan struct{})}
	handler := newRig(t, live, volumeNetworksOn)
	review := largeReviews()[1]
	var all sync.WaitGroup
	ask := func(n int) {
		for range n {
			all.Go(func() {
				status, body := handler.post(review.path, review.review)
				must.Check(t, status == 200 && strings.Contains(body, `"allowed":true`), "got %d %.300s", status, body)
			})
		}
	}
	ask(1)
	for live.lists.Load() < 1 {
		time.Sleep(time.Millisecond)
	}
	ask(500)
	status, body := handler.post(review.path+"?timeout=50ms", review.review)
	must.Check(t, status == 200 && strings.Contains(body, "waiting for a read of the cluster"), "decided without a read: %d %s", status, body)
	close(live.hold)
	all.Wait()
	must.True(t, live.lists.Load() <= 50, "501 reviews read the volumes %d times", live.lists.Load())
}
