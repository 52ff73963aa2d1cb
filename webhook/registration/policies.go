package registration

import (
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// Policies by which the API server decides on attachments while Fairlead is down.
const (
	UnwatchedAttachments = "fairlead-unwatched-attachments"
	UnwatchedVolumes     = "fairlead-unwatched-volumes"
)

// Policy is an admission policy and what binds it.
type Policy struct {
	Policy  *admissionregistrationv1.ValidatingAdmissionPolicy
	Binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding
}

// FencingPolicies decide on attachments without Fairlead's mark, which are created while Fairlead is down.
//
// The first policy compares with Nodes, and fails closed. A Node's status names volume handles, not PersistentVolumes. So
// a lost node holds all volumes of the driver, unless the Node says that its loss is recorded. The API server evaluates
// the policy once for each Node and unmarked attachment: 40 ms with 500 nodes, measured.
//
// The second policy tests membership in the lists of the NodeFences in an incident, which the controller publishes as the gate judges.
// The policy fails open: for some seconds after the kind NodeFence is created, the API server can't find the kind. The
// API server would then refuse all attachments of all drivers.
func FencingPolicies(storages []profiles.Profile) []Policy {
	return []Policy{
		unwatched(UnwatchedAttachments, storages, admissionregistrationv1.Fail,
			admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Node"}, &metav1.LabelSelector{},
			admissionregistrationv1.Validation{
				Expression: fmt.Sprintf("%s || (%s && !%s) || %s || !%s", sameNode, ready, OutOfService("params"), lossOnRecord, hasVolumes),
				MessageExpression: "'Fairlead is not answering, and node ' + params.metadata.name + ' is lost with volumes of ' + object.spec.attacher + " +
					"': attached elsewhere now, one of them could have two writers. " + advice + "'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}),
		unwatched(UnwatchedVolumes, storages, admissionregistrationv1.Ignore,
			admissionregistrationv1.ParamKind{APIVersion: v1alpha1.GroupVersion.String(), Kind: "NodeFence"},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: fence.IncidentLabel, Operator: metav1.LabelSelectorOpExists}}},
			admissionregistrationv1.Validation{
				Expression: itself + " ? !params.?spec.?closed.orValue(false) : !" + withheld,
				MessageExpression: "'Fairlead is not answering, and volume ' + object.spec.source.persistentVolumeName + ' was last on node ' + params.?spec.?nodeName.orValue('') + " +
					"(" + itself + " ? ', which is fenced' : ', which may still write to it') + ': attached elsewhere now, it could have two writers. " + advice + "'",
				Reason: ptr.To(metav1.StatusReasonForbidden),
			}),
	}
}

// In CEL: parts of the attachment, and of the Node or NodeFence that it is compared with.
const (
	sameNode = "params.metadata.name == object.spec.nodeName"
	// itself: the attachment is to the recorded boot, not to another machine that took the node's name.
	itself     = "(params.?spec.?nodeName.orValue('') == object.spec.nodeName && params.?spec.?nodeUID.orValue('') != '' && !params.?spec.?over.orValue(false))"
	withheld   = "(object.spec.source.?persistentVolumeName.orValue('') in params.?spec.?withheld.orValue([]))"
	ready      = "params.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'True')"
	hasVolumes = "params.?status.?volumesInUse.orValue([]).exists(v, v.startsWith('kubernetes.io/csi/' + object.spec.attacher + '^'))"
	bootID     = "params.?status.?nodeInfo.?bootID.orValue('')"
	// lossOnRecord: fence.RecordedLossAnnotation is of the present loss, and does not list the volume.
	mark         = "params.metadata.?annotations[?'" + fence.RecordedLossAnnotation + "'].orValue('').split(' ')"
	lossOnRecord = "(" + bootID + " != '' && params.?status.?conditions.orValue([]).exists(c, c.type == 'Ready' && c.status == 'Unknown' && " +
		mark + "[0] == " + bootID + " + '@' + string(c.lastTransitionTime)) && !(object.spec.source.?persistentVolumeName.orValue('') in " + mark + "))"
)

// advice is text within a literal of CEL: no quotes. It names both bindings: mostly both policies hold an attachment.
const advice = "Bring Fairlead back (kubectl -n " + Namespace + " get pods) or the node; if Fairlead can not come back and you know that the node is off: " +
	"kubectl delete validatingadmissionpolicybinding " + UnwatchedAttachments + " " + UnwatchedVolumes + ". Kubernetes tries again by itself"

func unwatched(name string, storages []profiles.Profile, failure admissionregistrationv1.FailurePolicyType, params admissionregistrationv1.ParamKind, selector *metav1.LabelSelector, validation admissionregistrationv1.Validation) Policy {
	p := policy(name, failure, Rules(OfCluster(Created("storage.k8s.io", "v1", "volumeattachments"))), Condition("of-a-protected-driver", ProtectedAttacher(storages)), validation)
	p.Policy.Spec.ParamKind = &params
	// By label: conditions would be evaluated once for each node.
	p.Policy.Spec.MatchConstraints.ObjectSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: fence.JudgedLabel, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"true"}},
	}}
	p.Binding.Spec.ParamRef = &admissionregistrationv1.ParamRef{Selector: selector, ParameterNotFoundAction: ptr.To(admissionregistrationv1.AllowAction)}
	return p
}

// policy refuses the requests that match and that a validation does not allow.
func policy(name string, failure admissionregistrationv1.FailurePolicyType, rules []admissionregistrationv1.RuleWithOperations, when admissionregistrationv1.MatchCondition, validations ...admissionregistrationv1.Validation) Policy {
	var named []admissionregistrationv1.NamedRuleWithOperations
	for _, r := range rules {
		named = append(named, admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	return Policy{
		Policy: &admissionregistrationv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: named, MatchPolicy: ptr.To(admissionregistrationv1.Equivalent)},
				MatchConditions:  Conditions(when),
				Validations:      validations,
				FailurePolicy:    &failure,
			},
		},
		Binding: &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingAdmissionPolicyBinding"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		},
	}
}
