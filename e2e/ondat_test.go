//lint:file-ignore SA1019 the readers of the deprecated API are served too

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/ondat"
)

// TestOndatSharedVolumes follows shared volumes of an Ondat control plane through
// their lives. Kubernetes binds the claims and collects the garbage; the overlay ondat
// is all that is installed, with its rights and no others.
func TestOndatSharedVolumes(t *testing.T) {
	c := newOndat(t)
	var address, late string

	t.Run("a new volume is published though it is changed meanwhile", func(t *testing.T) {
		c := c.in(t)
		c.changeOnce("v-data")
		c.bed.Requests()
		c.share("data", "10.1.0.1:32001")
		c.within("published", func() error {
			if c.mountEndpoint("data") == "" {
				return fmt.Errorf("not published")
			}
			return nil
		})
		s := c.service("data")
		address = s.Spec.ClusterIP
		if c.mountEndpoint("data") != address+":2049" {
			t.Errorf("the mount endpoint is %s, the ClusterIP %s", c.mountEndpoint("data"), address)
		}
		c.must(c.leadsTo("data", address, "10.1.0.1:32001"))
		if s.Labels["storageos.com/volume-id"] != "v-data" || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "PersistentVolumeClaim" || s.Spec.Selector != nil {
			t.Errorf("got %+v, %+v", s.ObjectMeta, s.Spec)
		}
		const volume = " /namespaces/default-id/volumes/v-data"
		// More may follow, where a poll began before the change.
		if got, want := c.requestsOf("v-data"), []string{"PUT" + volume + "/nfs/mount-endpoint", "GET" + volume, "PUT" + volume + "/nfs/mount-endpoint"}; !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("got %v, want %v", got, want)
		}
		c.warned("data", "Published")
	})
	t.Run("a failover keeps the address, and leads nowhere in between", func(t *testing.T) {
		c := c.in(t)
		c.bed.LoseServer("v-data")
		c.within("withdrawn", func() error { return c.leadsTo("data", address, "") })
		c.bed.Attach("v-data", "10.1.0.2:32007")
		c.within("failed over", func() error { return c.leadsTo("data", address, "10.1.0.2:32007") })
	})
	t.Run("a deleted Service returns at once with its address", func(t *testing.T) {
		c := c.in(t)
		c.bed.Requests()
		before := c.service("data")
		c.must(c.Client.Delete(t.Context(), before))
		took := c.within("restored", func() error {
			if s := c.service("data"); s == nil || s.UID == before.UID {
				return fmt.Errorf("the Service is not there")
			}
			return c.leadsTo("data", address, "10.1.0.2:32007")
		})
		if took > 10*time.Second { // by its event; the cache would hold for a minute
			t.Errorf("restored after %s", took)
		}
		if got := c.requestsOf("v-data"); len(got) > 0 {
			t.Errorf("the mount endpoint is the same, and was set: %v", got)
		}
	})
	t.Run("a foreign Service is not adopted", func(t *testing.T) {
		c := c.in(t)
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ondatNamespace, Name: "taken"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Port: 2049}}},
		}
		c.must(c.Client.Create(t.Context(), foreign))
		c.share("taken", "10.1.0.3:32001")
		c.warned("taken", "ForeignService")
		if now := c.service("taken"); now.ResourceVersion != foreign.ResourceVersion || c.mountEndpoint("taken") != "" {
			t.Errorf("published at %q, Service %+v", c.mountEndpoint("taken"), now)
		}
	})
	t.Run("a killed controller goes on where it was", func(t *testing.T) {
		c := c.in(t)
		c.bed.Fail(ondat.Fault{Method: http.MethodPut, Status: http.StatusServiceUnavailable, Body: `{"error":"store outage"}`})
		c.share("late", "10.1.0.4:32001")
		c.within("a Service that is not published yet", func() error {
			s := c.service("late")
			if s == nil {
				return fmt.Errorf("there is none")
			}
			late = s.Spec.ClusterIP
			return c.leadsTo("late", late, "10.1.0.4:32001")
		})
		uid := c.service("late").UID
		c.restart(t.Context(), func() {
			c.bed.Attach("v-data", "10.1.0.5:32001")
			c.bed.Recover()
		})
		c.within("published by the successor", func() error {
			if got := c.mountEndpoint("late"); got != late+":2049" {
				return fmt.Errorf("the mount endpoint is %q", got)
			}
			return c.leadsTo("data", address, "10.1.0.5:32001")
		})
		if c.service("late").UID != uid {
			t.Error("the Service was created again")
		}
	})
	t.Run("what is published goes with the claim", func(t *testing.T) {
		c := c.in(t)
		c.bed.Detach("v-data")
		c.must(c.Client.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ondatNamespace, Name: "data"}}))
		c.eventually("collected", 30*time.Second, func() error {
			if s := c.service("data"); s != nil {
				return fmt.Errorf("the Service is there: %+v", s.ObjectMeta)
			}
			var endpoints corev1.Endpoints
			if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: ondatNamespace, Name: "data"}, &endpoints); !apierrors.IsNotFound(err) {
				return fmt.Errorf("the Endpoints are there: %w", err)
			}
			if left := c.kubectl("-n", ondatNamespace, "get", "endpointslices", "-l", "kubernetes.io/service-name=data", "-o", "name"); left != "" {
				return fmt.Errorf("there are slices: %s", left)
			}
			if got := c.mountEndpoint("data"); got != "" {
				return fmt.Errorf("the mount endpoint is still %s", got)
			}
			return nil
		})
	})
	log, err := os.ReadFile(c.Replicas()[0].Log)
	c.must(err)
	if strings.Contains(string(log), "forbidden") {
		t.Error("the overlay's rights do not suffice")
	}
}
