package registration

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/rwx"
)

// csiControllerUser is the account of the CSI controller.
const csiControllerUser = "system:serviceaccount:" + Namespace + ":fairlead-csi-controller"

// RBAC grants a right on a whole object. These policies bound what Fairlead's own accounts may change of one. They match
// no other account, so the API server evaluates one short condition for the writes of users.

// PodRights: the controller records a network namespace on a CSI plugin pod. Without the policy, "patch pods" also changes
// images, labels and annotations.
func PodRights() Policy {
	return bound("fairlead-controller-pods", ControllerUser, Rules(On("", "v1", "pods", admissionregistrationv1.Update)),
		may(sameBut("metadata", "annotations", "managedFields", "resourceVersion", "generation")+" && "+
			sameBut("metadata.annotations", rwx.NamespaceAnnotation)+" && "+sameBut("spec"),
			"of a pod, Fairlead may record a network namespace; nothing else"),
	)
}

// NodeRights: the controller taints lost nodes, and records their loss.
func NodeRights() Policy {
	others := func(node string) string {
		return fmt.Sprintf("%s.?spec.?taints.orValue([]).filter(t, t.key != '%s')", node, fence.OutOfServiceTaint)
	}
	return bound("fairlead-controller-nodes", ControllerUser, Rules(OfCluster(On("", "v1", "nodes", admissionregistrationv1.Update))),
		may(sameBut("metadata", "annotations", "managedFields", "resourceVersion", "generation")+" && "+
			sameBut("metadata.annotations", fence.RecordedLossAnnotation)+" && "+sameBut("spec", "taints")+" && "+others("object")+" == "+others("oldObject"),
			"of a node, Fairlead may change the taint "+fence.OutOfServiceTaint+" and the annotation "+fence.RecordedLossAnnotation+"; nothing else"),
	)
}

// NodeAnnotationRights: the CSI controller annotates nodes with the server that they use.
func NodeAnnotationRights() Policy {
	return bound("fairlead-csi-controller-nodes", csiControllerUser, Rules(OfCluster(On("", "v1", "nodes", admissionregistrationv1.Update))),
		may(sameBut("metadata", "annotations", "managedFields", "resourceVersion", "generation")+" && "+
			same("metadata.annotations", "k.endsWith('"+csi.AddressKey("")+"')")+" && "+sameBut("spec"),
			"of a node, Fairlead may change the annotations DRIVER"+csi.AddressKey("")+"; nothing else"),
	)
}

// sidecarFinalizers is the prefix of the finalizers of the sidecar external-attacher.
const sidecarFinalizers = "external-attacher/"

// VolumeRights: the CSI controller removes the finalizer that the sidecar external-attacher has left on a PersistentVolume.
func VolumeRights() Policy {
	finalizers := func(object string) string { return object + ".metadata.?finalizers.orValue([])" }
	return bound("fairlead-csi-controller-volumes", csiControllerUser, Rules(OfCluster(On("", "v1", "persistentvolumes", admissionregistrationv1.Update))),
		may(sameBut("metadata", "finalizers", "managedFields", "resourceVersion", "generation")+" && "+sameBut("spec")+" && "+
			fmt.Sprintf("%[1]s.all(f, f in %[2]s) && %[2]s.all(f, f.startsWith('%[3]s') || f in %[1]s)", finalizers("object"), finalizers("oldObject"), sidecarFinalizers),
			"of a PersistentVolume, Fairlead may remove finalizers "+sidecarFinalizers+"DRIVER; nothing else"),
	)
}

// ServiceRights: the CSI controller writes only Services that it created, with their addresses. A Service leads to NFS
// servers alone: external IPs would take over addresses of others.
func ServiceRights() Policy {
	write := []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete}
	const (
		written  = "(request.operation == 'DELETE' ? oldObject : object)"
		deletes  = "request.operation == 'DELETE'"
		resource = "request.resource.resource"
	)
	ours := func(object string) string {
		return fmt.Sprintf("'%s' in %s.metadata.?labels.orValue({})", publish.ServiceLabel, object)
	}
	ownedBy := func(kinds ...string) string {
		return "oldObject.metadata.?ownerReferences.orValue([]).exists(o, o.kind in " + Quoted(kinds...) + ")"
	}
	return bound("fairlead-csi-controller-services", csiControllerUser,
		Rules(On("", "v1", "services", write...), On("", "v1", "endpoints", admissionregistrationv1.Delete), On("discovery.k8s.io", "v1", "endpointslices", write...)),
		may("request.namespace != '"+metav1.NamespaceSystem+"'", "Fairlead publishes nothing in namespace "+metav1.NamespaceSystem+": move the NFSService or the claim to another namespace"),
		may(fmt.Sprintf("request.namespace != '%s' || request.name != 'kubernetes' && %s.metadata.?labels[?'%s'].orValue('') != 'kubernetes'", metav1.NamespaceDefault, written, discoveryv1.LabelServiceName),
			"Service default/kubernetes is the API server, and not Fairlead's"),
		may(deletes+" || "+ours("object"), "Fairlead writes only objects with the label "+publish.ServiceLabel),
		// A user may have removed the label, which Fairlead restores. The endpoint controllers make slices that belong to
		// Services, and so slices count by name.
		may("request.operation == 'CREATE' || "+ours("oldObject")+" || ("+resource+" == 'services' ? "+ownedBy("NFSService", rwx.ClaimKind)+
			// Endpoints of Ondat's released manager are deleted when Fairlead takes over its Service. They have no owner.
			" : "+resource+" == 'endpoints' ? '"+ondat.VolumeIDLabel+"' in oldObject.metadata.?labels.orValue({}) : oldObject.metadata.name.matches('-fairlead-ipv[46]$'))",
			"Fairlead did not create the object: delete or rename it, or rename the NFSService"),
		may(deletes+" || "+resource+" != 'services' || object.spec.?type.orValue('ClusterIP') == 'ClusterIP' && object.spec.?externalIPs.orValue([]).size() == 0 && object.spec.?selector.orValue({}).size() == 0",
			"a Service of Fairlead has type ClusterIP, no selector and no external IPs"),
	)
}

// bound is a policy for one account of Fairlead. It fails closed: only Fairlead waits.
func bound(name, user string, rules []admissionregistrationv1.RuleWithOperations, validations ...admissionregistrationv1.Validation) Policy {
	return policy(name, admissionregistrationv1.Fail, rules, Condition("by-fairlead", fmt.Sprintf("request.userInfo.username == %q", user)), validations...)
}

func may(expression, message string) admissionregistrationv1.Validation {
	return admissionregistrationv1.Validation{Expression: expression, Message: message, Reason: ptr.To(metav1.StatusReasonForbidden)}
}

// sameBut, in CEL: a map of the object, at a path such as metadata.labels, has changed in these keys at most.
func sameBut(path string, keys ...string) string { return same(path, "k in "+Quoted(keys...)) }

// same, in CEL, leaves out the keys k for which the condition holds. dyn: the API server's type check takes an object with
// known fields for no map.
func same(path, leftOut string) string {
	in := func(object string) string { return "dyn(" + object + ").?" + strings.ReplaceAll(path, ".", ".?") }
	return fmt.Sprintf("[%[1]s.orValue({}), %[2]s.orValue({})].all(m, m.all(k, %[3]s || %[1]s[?k] == %[2]s[?k]))", in("object"), in("oldObject"), leftOut)
}
