package registration

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
)

// markTimeout is how long an attachment waits for the mark. Without it the API
// server judges by itself, so a Fairlead that hangs costs this much and no more.
const markTimeout int32 = 2

// FencingEntries are the entries of fencing for these storage systems. Only clusters with fencing install them.
func FencingEntries(storages []profiles.Profile) []Entry {
	attachments := rules(ofCluster(created("storage.k8s.io", "v1", "volumeattachments")))
	protected := condition("of-a-protected-driver", protectedAttacher(storages))
	outside := notInNamespaces(Namespace, metav1.NamespaceSystem)
	outside.MatchLabels = map[string]string{fence.OptInLabel: fence.OptedIn}
	return []Entry{
		{
			// The mark shows that Fairlead answers: the next entry then decides on a marked attachment, and must answer.
			// FencingPolicies decide on the others.
			Path: AttachmentMarksPath, Rules: attachments, Timeout: markTimeout, Once: true,
			Conditions: conditions(protected, condition("not-marked", "!("+marked+")")),
		},
		{
			// Two writers corrupt a volume.
			Path: AttachmentsPath, Rules: attachments, FailClosed: true,
			Conditions: conditions(protected, condition("marked", marked)),
		},
		{
			// Only for changes of the out-of-service taint: heartbeats are nodes/status, and the API server compares the
			// taints of other updates. A node must never wait for Fairlead.
			Path: NodesPath, Rules: rules(ofCluster(on("", "v1", "nodes", admissionregistrationv1.Update))), Timeout: mutateTimeout,
			Conditions: conditions(
				condition("the-taint-comes-or-goes", outOfService("object")+" != "+outOfService("oldObject")),
				condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", ControllerUser)),
			),
		},
		{
			// The next entry refuses an override that is not recorded.
			Path: NodeFenceOverridesPath, Rules: rules(ofCluster(written(own.Group, own.Version, "nodefences"))),
			Conditions: conditions(condition("an-override-changes", gateOverrideChanged)),
		},
		{
			// An override needs its record.
			Path: NodeFencesPath, Rules: rules(ofCluster(changed(own.Group, own.Version, "nodefences"))), FailClosed: true,
			Conditions: conditions(
				condition("an-override-changes-or-a-fence-is-forgotten", "request.operation == 'DELETE' ? oldObject.?status.?phase.orValue('') in "+quoted(unhealthy...)+" : ("+gateOverrideChanged+" || "+othersChangeMeta+")"),
				condition("not-forgotten-by-fairlead", fmt.Sprintf("!(request.operation == 'DELETE' && request.userInfo.username == %q)", ControllerUser)),
				// All of a kind going away, with its definition, must not wait for Fairlead.
				condition("not-the-removal-of-the-kind", "!(request.operation == 'DELETE' && request.userInfo.username == 'system:apiserver')"),
			),
		},
		{
			// For pods of users: their namespaces opt in by a label.
			Path: WorkloadPodsPath, Rules: rules(created("", "v1", "pods")), Namespaces: outside,
			Conditions: conditions(
				condition("with-a-claim", "object.?spec.?volumes.orValue([]).exists(v, has(v.persistentVolumeClaim) || has(v.ephemeral))"),
				condition("not-on-a-node-yet", "object.?spec.?nodeName.orValue('') == ''"),
			),
		},
	}
}

// unhealthy are the phases of a NodeFence that must not be forgotten.
var unhealthy = []v1alpha1.NodeFencePhase{
	v1alpha1.NodeLost, v1alpha1.NodeFencing, v1alpha1.NodeFenced, v1alpha1.NodeDrained, v1alpha1.NodeReturned, v1alpha1.NodeUnfencing,
}

// gateOverrideChanged, in CEL: the override of a NodeFence's gate or its record is added, changed or removed.
var gateOverrideChanged = differs(annotation(fence.OverrideAnnotation), "''") + " || " + differs(annotation(fence.OverriddenAnnotation), "''")

// othersChangeMeta, in CEL: another account changes the controller's labels or finalizer.
var othersChangeMeta = fmt.Sprintf("(request.userInfo.username != %q && (%s || %s || %s))", ControllerUser,
	differs(label(fence.PhaseLabel), "''"), differs(label(fence.NodeLabel), "''"),
	differs(func(object string) string {
		return fmt.Sprintf("('%s' in %s.?metadata.?finalizers.orValue([]))", fence.RecordFinalizer, object)
	}, "false"))

func annotation(key string) func(object string) string {
	return func(object string) string {
		return fmt.Sprintf("%s.?metadata.?annotations[?'%s'].orValue('')", object, key)
	}
}

func label(key string) func(object string) string {
	return func(object string) string { return fmt.Sprintf("%s.?metadata.?labels[?'%s'].orValue('')", object, key) }
}

// differs, in CEL: part differs between the object and the old object. In a new object, part differs from absent.
func differs(part func(object string) string, absent string) string {
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
