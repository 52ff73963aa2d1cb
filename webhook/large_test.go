package webhook

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/storage/longhorn"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// liveOver reads as the webhook does.
func liveOver(t testing.TB, server *apiserver.Server, url string) *lists.Live {
	t.Helper()
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	c := &rest.Config{Host: url, QPS: -1, DisableCompression: true}
	api, err := client.New(c, client.Options{Scheme: scheme, Mapper: server.Mapper()})
	must.Do(t, err)
	return lists.NewLive(api)
}

func largeCluster(t testing.TB, size apiserver.Size) *apiserver.Server {
	t.Helper()
	scheme, err := cluster.NewScheme()
	must.Do(t, err)
	server, err := apiserver.New(scheme, size)
	must.Do(t, err)
	return server
}

// largeReview is one of those that gather much.
type largeReview struct{ name, path, review, warning string }

func largeReviews() []largeReview {
	return []largeReview{
		{"setting", settingsPath, settingReview(reviews.SystemSetting, "CREATE", "priority-class", `{"metadata":{"name":"priority-class"},"value":"longhorn-critical"}`),
			"accepted; will be applied when these volumes are detached: pvc-00000000-"},
		{"tolerations", settingsPath, settingReview(reviews.SystemSetting, "UPDATE", "taint-toleration", `{"metadata":{"name":"taint-toleration"},"value":"key=value:NoSchedule"},"oldObject":{"metadata":{"name":"taint-toleration"},"value":""}`),
			"accepted; will be applied when these volumes are detached: pvc-00000000-"},
		{"network of RWX volumes", settingsPath, settingReview(reviews.SystemSetting, "UPDATE", "endpoint-network-for-rwx-volume", `{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":"kube-system/storage-net"},"oldObject":{"metadata":{"name":"endpoint-network-for-rwx-volume"},"value":""}`),
			"there is no NetworkAttachmentDefinition kube-system/storage-net"},
		{"network", registration.NetworksPath, reviews.Of(reviews.Network, `"resource":{"group":"k8s.cni.cncf.io","version":"v1","resource":"network-attachment-definitions"},"namespace":"team-x","name":"nfs","operation":"DELETE","oldObject":{"metadata":{"name":"nfs"}}`), ""},
		{"annotations", registration.VolumeNetworksPath, reviews.Of(reviews.Claim, `"resource":{"group":"","version":"v1","resource":"persistentvolumeclaims"},"namespace":"team-a","name":"data-1","operation":"UPDATE",`+
			`"object":{"metadata":{"name":"data-1","namespace":"team-a","annotations":{"fairlead.io/volume-network":"team-x/nfs"}},"spec":{"accessModes":["ReadWriteMany"],"volumeName":"`+apiserver.VolumeName(1)+`","storageClassName":"longhorn"}}`),
			"the change takes effect when the volume is detached: pvc-00000001-"},
	}
}

func volumeNetworksOn(_ *config.Configuration, p *Profile) { p.Duties.VolumeNetworks = config.On }

// ask fails the test where the review did not look at the cluster.
func (l largeReview) ask(t testing.TB, handler rig) {
	t.Helper()
	response := handler.ask(t, l.path, l.review)
	must.True(t, response.Allowed && strings.Contains(fmt.Sprint(response.Warnings), l.warning), "%s: got %+v, %q", l.name, response.Result, response.Warnings)
}

// A list that is not limited grows with the cluster, and the webhook has little memory.
func TestReviewsReadLongListsInPages(t *testing.T) {
	server := largeCluster(t, apiserver.Size{PersistentVolumes: 1200, Volumes: 600, Nodes: 3, Snapshots: 1})
	listening := httptest.NewServer(server)
	defer listening.Close()
	handler := newRig(t, liveOver(t, server, listening.URL), volumeNetworksOn)
	unread := map[string][]string{"setting": {"volumeattachments.longhorn.io", "engines.longhorn.io", "replicas.longhorn.io", "persistentvolumes", "persistentvolumeclaims"}}
	paged := map[string][]string{"setting": {"volumes.longhorn.io", "volumeattachments.storage.k8s.io"}, "network": {"persistentvolumes", "persistentvolumeclaims"}, "annotations": {"volumes.longhorn.io", "persistentvolumes", "persistentvolumeclaims"}}
	for _, review := range largeReviews() {
		before := len(server.Lists())
		review.ask(t, handler)
		requests := map[string]int{}
		for _, r := range server.Lists()[before:] {
			requests[r.Resource]++
			must.Check(t, r.Limit > 0 && r.Limit <= 500, "%s: %s listed with limit %d", review.name, r.Resource, r.Limit)
		}
		for _, resource := range unread[review.name] {
			must.Check(t, requests[resource] == 0, "%s: %s are read", review.name, resource)
		}
		for _, resource := range paged[review.name] {
			must.Check(t, requests[resource] >= 2, "%s: %s are read by %d requests, so nothing is seen of pages", review.name, resource, requests[resource])
		}
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
