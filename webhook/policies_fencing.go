package webhook

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// Policies that the API server judges attachments by while Fairlead does not.
const (
	UnwatchedAttachments = "fairlead-unwatched-attachments"
	UnwatchedVolumes     = "fairlead-unwatched-volumes"
)

// Policy is an admission policy and what binds it.
type Policy struct {
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// FencingPolicies judge the attachments that Fairlead has not marked, so that
// while it is down healthy nodes go on attaching and volumes of lost ones are
// held. They know less than Fairlead and hold more: any volume of a driver that a
// lost node has volumes of, unless it is written on the Node that its loss is on record. An attachment names a
// PersistentVolume, and a Node's status names handles: only the record tells which is which.
//
// The first is looked at once for each node, by any attachment that is not marked:
// measured, 40 ms of the API server's time with 500 nodes. What Fairlead has
// marked costs nothing.
//
// The second holds what was on nodes whose objects are gone, and what nodes that are back
// may still write to, as far as Fairlead has recorded it: the same as
// fence.PhaseLabelValue and fence.Attach. It fails open: the API server can't look up its kind for some
// seconds after that is defined, and would refuse every attachment of the cluster
// until then, those of other drivers too, since it looks up parameters before
// match conditions.
func FencingPolicies(storages []profiles.Profile) []Policy {
	return []Policy{
		unwatched(UnwatchedAttachments, storages, admissionregistrationv1.Fail,
			admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Node"}, &metav1.LabelSelector{},
			admissionregistrationv1.Validation{
				Expression: fmt.Sprintf("%s || (%s && !%s) || %s || !%s", sameNode, ready, outOfService("params"), lossOnRecord, hasVolumes),
				MessageExpression: "'Fairlead is not answering, and node ' + params.metadata.name + ' is lost with volumes of ' + object.spec.attacher + " +
					"': attached elsewhere now, one of them could have two writers. " + advice + "'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}),
		unwatched(UnwatchedVolumes, storages, admissionregistrationv1.Ignore,
			admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeFence"},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: fence.PhaseLabel, Operator: metav1.LabelSelectorOpExists},
				{Key: fence.PhaseLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{string(v1alpha1.NodeHealthy)}},
			}},
			admissionregistrationv1.Validation{
				Expression: "!" + recordHolds,
				MessageExpression: "'Fairlead is not answering, and volume ' + object.spec.source.persistentVolumeName + ' was last on node ' + " + fenceOf + " + " +
					"(" + recordLost + " ? ', which is lost and not fenced' : ', which may still write to it') + ': attached elsewhere now, it could have two writers. " + advice + "'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}),
	}
}

// In CEL: what is read of the attachment, and of the node or NodeFence that is held against it.
const (
	sameNode = "params.metadata.name == object.spec.nodeName"
	fenceOf  = "params.?status.?nodeName.orValue(params.metadata.name)"
	// A machine that is gone is not the one that has its node's name now.
	itself     = fenceOf + " == object.spec.nodeName && !params.?status.?gone.orValue(false)"
	ready      = "params.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"
	hasVolumes = "params.?status.?volumesInUse.orValue([]).exists(v, v.startsWith('kubernetes.io/csi/' + object.spec.attacher + '^'))"
	bootID     = "params.?status.?nodeInfo.?bootID.orValue('')"
	// The loss that fence.RecordedLossAnnotation names is this one, and the volume is none that it holds.
	mark         = "params.metadata.?annotations[?'" + fence.RecordedLossAnnotation + "'].orValue('').split(' ')"
	lossOnRecord = "(" + bootID + " != '' && params.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'Unknown' && " +
		mark + "[0] == " + bootID + " + '@' + string(c.lastTransitionTime)) && !(object.spec.source.?persistentVolumeName.orValue('') in " + mark + "))"
	recordLost = "params.?status.?phase.orValue('') in ['" + string(v1alpha1.NodeLost) + "', '" + string(v1alpha1.NodeFencing) + "']"
	// Of a node that works: its kubelet uses what was detached by force, or may do so. A shared file system may have
	// other writers, but one that is not healthy may be tainted still. Once the machine is fenced, what is known
	// of it from before counts no more.
	stillMounted = "(has(v.until) || v.?detached.orValue(false)) && (!v.?shared.orValue(false) || v.?block.orValue(false) || params.?status.?phase.orValue('') != '" + string(v1alpha1.NodeHealthy) + "')" +
		" && !(params.?status.?phase.orValue('') in ['" + string(v1alpha1.NodeFenced) + "', '" + string(v1alpha1.NodeDrained) + "'])"
	tainted     = "params.?status.?reason.orValue('') == '" + fence.ReasonTaintedButReady + "'"
	recordHolds = "(!(" + itself + ") && params.?status.?volumes.orValue([]).exists(v, v.persistentVolume == object.spec.source.?persistentVolumeName.orValue('') && (" +
		recordLost + " || " + tainted + " || " + stillMounted + ")))"
)

// advice is text within a literal of CEL: no quotes. It names both bindings: where one policy holds an
// attachment, the other mostly does too.
const advice = "Bring Fairlead back (kubectl -n " + Namespace + " get pods) or the node; if Fairlead can not come back and you know that the node is off: " +
	"kubectl delete validatingadmissionpolicybinding " + UnwatchedAttachments + " " + UnwatchedVolumes + ". Kubernetes tries again by itself"

func unwatched(name string, storages []profiles.Profile, failure admissionregistrationv1.FailurePolicyType, params admissionregistrationv1.ParamKind, selector *metav1.LabelSelector, validation admissionregistrationv1.Validation) Policy {
	rule := ofCluster(created("storage.k8s.io", "v1", "volumeattachments"))
	return Policy{
		Policy: &admissionregistrationv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				ParamKind: &params,
				MatchConstraints: &admissionregistrationv1.MatchResources{
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
					MatchPolicy:   ptr.To(admissionregistrationv1.Equivalent),
					// What Fairlead has marked, by label: conditions would be looked at once for each node.
					ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
						{Key: fence.JudgedLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
					}},
				},
				MatchConditions: []admissionregistrationv1.MatchCondition{condition("of-a-protected-driver", protectedAttacher(storages))},
				Validations:     []admissionregistrationv1.Validation{validation},
				FailurePolicy:   &failure,
			},
		},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name,
				ParamRef: &admissionregistrationv1.ParamRef{
					Selector: selector, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction),
				},
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
