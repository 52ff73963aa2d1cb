package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// markTimeout is how long an attachment waits for the mark. Without it the API
// server judges by itself, so a Fairlead that hangs costs this much and no more.
const markTimeout int32 = 2

// Fencing has the entries of fencing for these storage systems. Only clusters with fencing install them.
func Fencing(storages []profiles.Profile) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	mutating, validating := Webhooks(nil)
	mutating.Webhooks = []admissionregistrationv1.MutatingWebhook{markAttachments(storages), recordNodeFenceOverrides(), gateWorkloadPods()}
	validating.Webhooks = []admissionregistrationv1.ValidatingWebhook{validateAttachments(storages), validateNodes(), validateNodeFences()}
	return mutating, validating
}

// markAttachments shows that Fairlead answers: validateAttachments then decides on a marked attachment, and must answer.
// FencingPolicies decide on the others.
func markAttachments(storages []profiles.Profile) admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entryAttachmentMarks + ".fairlead.io",
		ClientConfig:            clientConfig(AttachmentMarksPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(created("storage.k8s.io", "v1", "volumeattachments"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(markTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.NeverReinvocationPolicy),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("of-a-protected-driver", protectedAttacher(storages)),
			condition("not-marked", "!("+marked+")"),
		},
	}
}

func validateAttachments(storages []profiles.Profile) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    entryAttachments + ".fairlead.io",
		ClientConfig:            clientConfig(AttachmentsPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(created("storage.k8s.io", "v1", "volumeattachments"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail), // two writers corrupt a volume
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("of-a-protected-driver", protectedAttacher(storages)),
			condition("marked", marked),
		},
	}
}

// validateNodes is only for changes of the out-of-service taint: heartbeats are nodes/status, and the API server compares
// the taints of other updates.
func validateNodes() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:                    entryNodes + ".fairlead.io",
		ClientConfig:            clientConfig(NodesPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(on("", "v1", "nodes", admissionregistrationv1.Update))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore), // a node must never wait for Fairlead
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("the-taint-comes-or-goes", outOfService("object")+" != "+outOfService("oldObject")),
			condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", ControllerUser)),
		},
	}
}

// recordNodeFenceOverrides fails open: validateNodeFences refuses an override that is not recorded.
func recordNodeFenceOverrides() admissionregistrationv1.MutatingWebhook {
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entryNodeFenceOverrides + ".fairlead.io",
		ClientConfig:            clientConfig(NodeFenceOverridesPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{ofCluster(written(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "nodefences"))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("an-override-changes", gateOverrideChanged),
		},
	}
}

func validateNodeFences() admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:         entryNodeFences + ".fairlead.io",
		ClientConfig: clientConfig(NodeFencesPath),
		Rules: []admissionregistrationv1.RuleWithOperations{ofCluster(on(v1alpha1.GroupVersion.Group, v1alpha1.GroupVersion.Version, "nodefences",
			admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete))},
		FailurePolicy:           ptr.To(admissionregistrationv1.Fail), // an override needs its record
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(validateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("an-override-changes-or-a-fence-is-forgotten", "request.operation == 'DELETE' ? oldObject.?status.?phase.orValue('') in "+quoted(unhealthy...)+" : ("+gateOverrideChanged+" || "+othersChangeMeta+")"),
			condition("not-forgotten-by-fairlead", fmt.Sprintf("!(request.operation == 'DELETE' && request.userInfo.username == %q)", ControllerUser)),
			// All of a kind going away, with its definition, must not wait for Fairlead.
			condition("not-the-removal-of-the-kind", "!(request.operation == 'DELETE' && request.userInfo.username == 'system:apiserver')"),
		},
	}
}

// gateWorkloadPods is for pods of users: their namespaces opt in by a label, and it fails open.
func gateWorkloadPods() admissionregistrationv1.MutatingWebhook {
	outside := notInNamespaces(Namespace, metav1.NamespaceSystem)
	outside.MatchLabels = map[string]string{fence.OptInLabel: fence.OptedIn}
	return admissionregistrationv1.MutatingWebhook{
		Name:                    entryWorkloadPods + ".fairlead.io",
		ClientConfig:            clientConfig(WorkloadPodsPath),
		Rules:                   []admissionregistrationv1.RuleWithOperations{created("", "v1", "pods")},
		FailurePolicy:           ptr.To(admissionregistrationv1.Ignore),
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       outside,
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNone),
		TimeoutSeconds:          ptr.To(mutateTimeout),
		AdmissionReviewVersions: []string{"v1"},
		ReinvocationPolicy:      ptr.To(admissionregistrationv1.IfNeededReinvocationPolicy),
		MatchConditions: []admissionregistrationv1.MatchCondition{
			condition("with-a-claim", "object.?spec.?volumes.orValue([]).exists(v, has(v.persistentVolumeClaim) || has(v.ephemeral))"),
			condition("not-on-a-node-yet", "object.?spec.?nodeName.orValue('') == ''"),
		},
	}
}

// unhealthy are the phases of a NodeFence that must not be forgotten.
var unhealthy = []v1alpha1.NodeFencePhase{
	v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing,
}

// gateOverrideChanged, in CEL: the override of a NodeFence's gate or its record is added, changed or removed.
var gateOverrideChanged = noteChanged(fence.OverrideAnnotation) + " || " + noteChanged(fence.OverriddenAnnotation)

// othersChangeMeta, in CEL: another account changes the controller's labels or finalizer.
var othersChangeMeta = fmt.Sprintf("(request.userInfo.username != %q && (%s || %s || %s))", ControllerUser,
	changed(label(fence.PhaseLabel), "''"), changed(label(fence.NodeLabel), "''"),
	changed(func(object string) string {
		return fmt.Sprintf("('%s' in %s.?metadata.?finalizers.orValue([]))", fence.RecordFinalizer, object)
	}, "false"))

func label(key string) func(object string) string {
	return func(object string) string { return fmt.Sprintf("%s.?metadata.?labels[?'%s'].orValue('')", object, key) }
}

// changed, in CEL: part differs between the object and the old object. In a new object, part differs from absent.
func changed(part func(object string) string, absent string) string {
	return fmt.Sprintf("%s != (request.operation == 'CREATE' ? %s : %s)", part("object"), absent, part("oldObject"))
}

// marked, in CEL: Fairlead decides on the attachment.
var marked = fmt.Sprintf("object.metadata.?labels[?'%s'].orValue('') == 'true'", fence.JudgedLabel)

// protectedAttacher, in CEL, is profiles.Profile.Serves.
func protectedAttacher(storages []profiles.Profile) string {
	var suffixes []string
	for _, s := range storages {
		suffixes = append(suffixes, s.DriverSuffixes...)
	}
	slices.Sort(suffixes)
	return quoted(slices.Compact(suffixes)...) + ".exists(s, object.spec.attacher == s || object.spec.attacher.endsWith('.' + s))"
}

// outOfService, in CEL: a node has the taint, whatever its value and effect.
func outOfService(node string) string {
	return fmt.Sprintf("%s.?spec.?taints.orValue([]).exists(t, t.key == '%s')", node, fence.OutOfServiceTaint)
}

// quoted lists words in CEL.
func quoted[S ~string](words ...S) string {
	var list []string
	for _, w := range words {
		list = append(list, fmt.Sprintf("'%s'", w))
	}
	return "[" + strings.Join(list, ", ") + "]"
}
