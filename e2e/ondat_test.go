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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

// TestOndatSharedVolumes follows the life of shared volumes of an Ondat control plane. Kubernetes binds claims and collects
// garbage. Only the overlay ondat is installed, with its rights alone.
func TestOndatSharedVolumes(t *testing.T) {
	c := newOndat(t)
	var address, late string

	c.part("a new volume that changes is published", func(c ondatCluster) {
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
			c.t.Errorf("the mount endpoint is %s, the ClusterIP %s", c.mountEndpoint("data"), address)
		}
		c.must(c.leadsTo("data", address, "10.1.0.1:32001"))
		if s.Labels["storageos.com/volume-id"] != "v-data" || len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "PersistentVolumeClaim" || s.Spec.Selector != nil {
			c.t.Errorf("got %+v, %+v", s.ObjectMeta, s.Spec)
		}
		const volume = " /namespaces/default-id/volumes/v-data"
		if got, want := c.requestsOf("v-data"), []string{"PUT" + volume + "/nfs/mount-endpoint", "PUT" + volume + "/nfs/mount-endpoint"}; !slices.Equal(got, want) {
			c.t.Errorf("got %v, want %v", got, want)
		}
		c.warned("data", "Published")
	})
	c.part("a failover keeps the address", func(c ondatCluster) {
		c.bed.LoseServer("v-data")
		c.within("withdrawn", func() error { return c.leadsTo("data", address, "") })
		c.bed.Attach("v-data", "10.1.0.2:32007")
		c.within("failed over", func() error { return c.leadsTo("data", address, "10.1.0.2:32007") })
	})
	c.part("a deleted Service is recreated with its address", func(c ondatCluster) {
		c.bed.Requests()
		before := c.service("data")
		c.delete(before)
		c.within("restored", func() error {
			if s := c.service("data"); s == nil || s.UID == before.UID {
				return fmt.Errorf("the Service is not there")
			}
			return c.leadsTo("data", address, "10.1.0.2:32007")
		})
		if got := c.requestsOf("v-data"); len(got) > 0 {
			c.t.Errorf("the unchanged mount endpoint was set again: %v", got)
		}
	})
	c.part("a Service of the released manager is taken over", func(c ondatCluster) {
		pv, claim := c.claim("managed")
		meta := metav1.ObjectMeta{Namespace: ondatNamespace, Name: pv.Name, Labels: map[string]string{"storageos.com/volume-id": "v-managed"}}
		//lint:ignore SA1019 the released manager writes the deprecated API
		c.must(c.create(&corev1.Endpoints{ObjectMeta: meta, Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: "10.1.0.8"}}, Ports: []corev1.EndpointPort{{Name: "nfs", Port: 32008}},
		}}}))
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: claim.Name, UID: claim.UID}}
		s := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "nfs", Port: 2049}}}}
		c.must(c.create(s))
		c.bed.Provision("default-id", "v-managed", pv.Name, claim.Name, ondatNamespace)
		c.bed.Change("v-managed", func(v *ondat.Volume) { v.Labels["storageos.com/nfs/mount-endpoint"] = s.Spec.ClusterIP + ":2049" })
		c.bed.Attach("v-managed", "10.1.0.9:32009")
		c.within("taken over, with no mirrored slice left", func() error { return c.leadsTo(pv.Name, s.Spec.ClusterIP, "10.1.0.9:32009") })
	})
	c.part("a foreign Service is not adopted", func(c ondatCluster) {
		foreign := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: ondatNamespace, Name: "taken"},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "x"}, Ports: []corev1.ServicePort{{Port: 2049}}},
		}
		c.must(c.create(foreign))
		c.share("taken", "10.1.0.3:32001")
		c.warned("taken", "ForeignService")
		if now := c.service("taken"); now.ResourceVersion != foreign.ResourceVersion || c.mountEndpoint("taken") != "" {
			c.t.Errorf("published at %q, Service %+v", c.mountEndpoint("taken"), now)
		}
	})
	c.part("a killed controller resumes", func(c ondatCluster) {
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
		c.restart(c.t.Context(), func() {
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
			c.t.Error("the Service was created again")
		}
	})
	c.part("a deleted claim removes everything published", func(c ondatCluster) {
		c.bed.Detach("v-data")
		data := metav1.ObjectMeta{Namespace: ondatNamespace, Name: "data"}
		c.delete(&corev1.PersistentVolumeClaim{ObjectMeta: data})
		c.waitGone(&corev1.Service{ObjectMeta: data})
		c.waitIs("slices and mount endpoint", 30*time.Second, "", func() any {
			return c.kubectl("-n", ondatNamespace, "get", "endpointslices", "-l", "kubernetes.io/service-name=data", "-o", "name") + c.mountEndpoint("data")
		})
	})
	log, err := os.ReadFile(c.Replicas()[0].Log)
	c.must(err)
	if strings.Contains(string(log), "forbidden") {
		t.Error("the overlay lacks rights")
	}
}
