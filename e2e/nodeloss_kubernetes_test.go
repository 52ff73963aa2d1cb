//go:build long

// What Kubernetes does without Fairlead: minutes of its own timeouts, for `make -C e2e test-long`.

package e2e

import (
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// TestRefusingTheDetachAttachesTwice shows why Fairlead gates the creation of attachments, and never their deletion.
// If the deletion is refused, the attach-detach controller regards the old attachment as uncertain, and ignores it:
// it attaches the volume to a second node while the first one still has it.
func TestRefusingTheDetachAttachesTwice(t *testing.T) {
	c := newLossyCluster(t)
	d := database{name: "db", driver: "other.csi.example.com", nodes: []string{"node-1", "node-2"}, clusterID: "c"}
	first := c.runDatabase(d)
	const name = "no-detach"
	c.must(c.create(&admissionregistrationv1.ValidatingAdmissionPolicy{
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
	c.must(c.create(&admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}))
	c.waitHas("policy in effect", 30*time.Second, func() string {
		out, _ := c.Kubectl(t.Context(), "", "delete", "volumeattachments", "--all", "--dry-run=server")
		return out
	}, "the old attachment is kept")
	film := c.film(&storagev1.VolumeAttachmentList{})
	c.lose(first)
	c.taint(first)
	second := film.wait(c, "attached to the second node", 2*time.Minute, attachedTo(d.volume(), d.other(first)))
	if _, gone := film.find(detachedFrom(d.volume(), first)); gone {
		t.Fatal("the old attachment was deleted")
	}
	c.waitIs("attachments", 10*time.Second, 2, func() any {
		var list storagev1.VolumeAttachmentList
		c.must(c.Client.List(t.Context(), &list))
		return len(slices.DeleteFunc(list.Items, func(va storagev1.VolumeAttachment) bool {
			return *va.Spec.Source.PersistentVolumeName != d.volume() || !va.Status.Attached
		}))
	})
	t.Logf("an RWO volume is attached to two nodes, %s after the node was lost, since the old attachment's deletion was refused", second.at.Sub(film.began).Round(time.Second))
}

// TestForcedDetachGivesTwoWriters deletes only the pod of a lost node. Kubernetes detaches by force after six minutes,
// and the lost node may still write.
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
	c.runUntilStopped(c.RunKubelets)
	return c
}
