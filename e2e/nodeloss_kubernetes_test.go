//go:build long

// What Kubernetes does without Fairlead: minutes of its own timeouts, for `make test-long`.

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestRefusingTheDetachAttachesTwice shows why Fairlead's gate is the creation of
// the next attachment and never the deletion of the old one: where the deletion is
// refused, the attach-detach controller takes the old attachment for uncertain,
// does not count it any more, and attaches the volume to a second node while the
// first one still has it.
func TestRefusingTheDetachAttachesTwice(t *testing.T) {
	c := newLossyCluster(t)
	d := database{name: "db", driver: "other.csi.example.com", nodes: []string{"node-1", "node-2"}, clusterID: "c"}
	first := c.runDatabase(d)
	const name = "no-detach"
	c.must(c.Client.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"storage.k8s.io"}, APIVersions: []string{"v1"}, Resources: []string{"volumeattachments"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "the old attachment is kept"}},
		},
	}))
	c.must(c.Client.Create(t.Context(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}))
	c.eventually("the policy holds", 30*time.Second, func() error {
		out, err := c.Kubectl(t.Context(), "", "delete", "volumeattachments", "--all", "--dry-run=server")
		if err != nil && strings.Contains(out, "the old attachment is kept") {
			return nil
		}
		return fmt.Errorf("it does not yet: %v: %s", err, out)
	})
	film := c.film(&storagev1.VolumeAttachmentList{})
	c.lose(first)
	c.taint(first)
	second := film.wait(c, "attached to the second node", 2*time.Minute, attachedTo(d.volume(), d.other(first)))
	if _, gone := film.find(detachedFrom(d.volume(), first)); gone {
		t.Fatal("the old attachment has gone: this shows nothing")
	}
	c.eventually("both are attached", 10*time.Second, func() error {
		var list storagev1.VolumeAttachmentList
		c.must(c.Client.List(t.Context(), &list))
		attached := 0
		for _, va := range list.Items {
			if *va.Spec.Source.PersistentVolumeName == d.volume() && va.Status.Attached {
				attached++
			}
		}
		if attached != 2 {
			return fmt.Errorf("%d are", attached)
		}
		return nil
	})
	t.Logf("an RWO volume is attached to two nodes, %s after the node was lost, since the old attachment's deletion was refused", second.at.Sub(film.began).Round(time.Second))
}

// TestForcedDetachGivesTwoWriters: where nothing but the pod is deleted, Kubernetes
// detaches by force after six minutes, and the lost node may still write.
func TestForcedDetachGivesTwoWriters(t *testing.T) {
	c := newLossyCluster(t)
	d := database{name: "left", driver: "other.csi.example.com", clusterID: "x", nodes: []string{"node-1", "node-2"}}
	first := c.runDatabase(d)
	film := c.film(&storagev1.VolumeAttachmentList{}, &corev1.PodList{})
	c.lose(first)
	c.kubectl("delete", "pod", d.pod().Name, "--force", "--grace-period=0", "--wait=false")
	attached := film.wait(c, "attached to another node", 8*time.Minute, attachedTo(d.volume(), d.other(first)))
	up := film.wait(c, "up on another node", time.Minute, upOn(d, d.other(first)))
	t.Logf("attached to another node %s after the node was lost, up %s after", attached.at.Sub(film.began).Round(time.Second), up.at.Sub(film.began).Round(time.Second))
}

// newLossyCluster has six nodes, and loses one of them within seconds.
func newLossyCluster(t *testing.T) *cluster {
	t.Helper()
	c := newControlPlane(t, options{nodes: 6, fastNodeLoss: true})
	c.runKubelets()
	return c
}
