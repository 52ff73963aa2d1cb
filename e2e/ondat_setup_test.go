//lint:file-ignore SA1019 the readers of the deprecated API are served too

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/testkit/ondat"
)

// ondatCluster has Ondat's shared volumes, and nothing else of Fairlead.
type ondatCluster struct {
	*cluster
	bed *ondat.Server
}

// part is a subtest on the same cluster.
func (c ondatCluster) part(name string, do func(c ondatCluster)) {
	c.run(name, func(_ *testing.T, of *cluster) { do(ondatCluster{of, c.bed}) })
}

const ondatNamespace = "apps"

// newOndat starts a cluster with the overlay ondat. The controller polls each second.
func newOndat(t *testing.T) ondatCluster {
	t.Helper()
	bed := ondat.New()
	server := bed.Start()
	t.Cleanup(server.Close)
	c := ondatCluster{bed: bed, cluster: newControlPlane(t, options{nodes: 1, ondat: fmt.Sprintf("apiEndpoint: %q, apiPollInterval: 1s", server.URL)})}
	c.must(c.Install(t.Context(), sandbox.Ondat))
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ondatNamespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "fairlead-system", Name: "storageos-api"},
			StringData: map[string]string{"username": bed.Username, "password": bed.Password},
		},
	} {
		c.must(c.create(object))
	}
	c.must(c.RunFairlead(t.Context(), 0, 1))
	return c
}

// share provisions volume v-NAME with its PV and a bound claim, and attaches it as shared, served at server.
func (c ondatCluster) share(name, server string) {
	c.t.Helper()
	pv, _ := c.claim(name)
	c.bed.Provision("default-id", "v-"+name, pv.Name, name, ondatNamespace)
	c.bed.Attach("v-"+name, server)
}

// claim creates a PV and a claim for it.
func (c ondatCluster) claim(name string) (*corev1.PersistentVolume, *corev1.PersistentVolumeClaim) {
	c.t.Helper()
	pv := csiVolume("pv-"+name, "csi.storageos.com", "v-"+name)
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	c.must(c.create(pv))
	claim := claimOf(pv, ondatNamespace, name)
	c.must(c.create(claim))
	return pv, claim
}

// mountEndpoint that the control plane has for a volume.
func (c ondatCluster) mountEndpoint(name string) string {
	v, _ := c.bed.Volume("v-" + name)
	return v.MountEndpoint()
}

// service of a claim; nil if it does not exist.
func (c ondatCluster) service(name string) *corev1.Service {
	c.t.Helper()
	var s corev1.Service
	if err := c.Client.Get(c.t.Context(), client.ObjectKey{Namespace: ondatNamespace, Name: name}, &s); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		c.t.Fatal(err)
	}
	return &s
}

// leadsTo wants a Service with this address, and one slice that has this server alone; empty: no server.
func (c ondatCluster) leadsTo(name, clusterIP, server string) error {
	s := c.service(name)
	if s == nil || s.DeletionTimestamp != nil || s.Spec.ClusterIP != clusterIP {
		return fmt.Errorf("the Service is %+v", s)
	}
	var list discoveryv1.EndpointSliceList
	err := c.Client.List(c.t.Context(), &list, client.InNamespace(ondatNamespace), client.MatchingLabels{discoveryv1.LabelServiceName: name})
	if err != nil {
		return err
	}
	var published []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			published = append(published, fmt.Sprintf("%s:%d", e.Addresses[0], *slice.Ports[0].Port))
		}
	}
	var want []string
	if server != "" {
		want = []string{server}
	}
	switch {
	case len(list.Items) != 1 || list.Items[0].OwnerReferences[0].UID != s.UID:
		return fmt.Errorf("slices %+v", list.Items)
	case !slices.Equal(published, want):
		return fmt.Errorf("the slice leads to %v, want %v", published, want)
	case s.Spec.Ports[0].Port != 2049 || server != "" && !strings.HasSuffix(server, ":"+s.Spec.Ports[0].TargetPort.String()):
		return fmt.Errorf("the Service's ports are %+v", s.Spec.Ports)
	}
	return nil
}

// within waits until check holds.
func (c ondatCluster) within(what string, check func() error) {
	c.t.Helper()
	began := time.Now()
	c.eventually(what, 10*time.Second, check)
	c.t.Logf("%s after %s", what, time.Since(began).Round(time.Millisecond))
}

// warned waits for an event of that reason about a claim.
func (c ondatCluster) warned(name, reason string) {
	c.t.Helper()
	c.waitHas("event "+reason, 5*time.Second, func() string { return c.events(ondatNamespace) }, "PersistentVolumeClaim "+name+" "+reason+" ")
}

// changeOnce gives a volume a new version right before its mount endpoint is first set, so the control plane refuses the
// request as stale.
func (c ondatCluster) changeOnce(id string) {
	var changed atomic.Bool
	c.bed.Before(func(r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/"+id+"/") && changed.CompareAndSwap(false, true) {
			c.bed.Change(id, func(v *ondat.Volume) { v.Description = "changed meanwhile" })
		}
	})
}

// requestsOf a volume since the last call.
func (c ondatCluster) requestsOf(id string) []string {
	return slices.DeleteFunc(c.bed.Requests(), func(r string) bool { return !strings.Contains(r, "/volumes/"+id) })
}

// restart kills the controller and starts it again; meanwhile runs in between.
func (c ondatCluster) restart(ctx context.Context, meanwhile func()) {
	c.t.Helper()
	replicas := c.Replicas()
	c.must(replicas[len(replicas)-1].Kill())
	meanwhile()
	c.ControllerArgs = []string{"--leader-elect=false"} // a killed leader does not release its lease
	_, err := c.StartReplica(ctx, sandbox.CSIControllerDeployment, sandbox.FirstController)
	c.must(err)
}
