package webhook

import (
	"fmt"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// markTimeout is how long an attachment waits for the mark. Without it the API
// server judges by itself, so a Fairlead that hangs costs this much and no more.
const markTimeout int32 = 2

// fencingRoutes are the rows of fencing for these storage systems. Only clusters with fencing install them.
func fencingRoutes(storages []profiles.Profile) []Route {
	attachments := registration.Rules(registration.OfCluster(registration.Created("storage.k8s.io", "v1", "volumeattachments")))
	protected := registration.Condition("of-a-protected-driver", registration.ProtectedAttacher(storages))
	return []Route{
		{
			// The mark shows that Fairlead answers: the next entry then decides on a marked attachment, and must answer.
			// FencingPolicies decide on the others.
			Part: PartFencing, For: "VolumeAttachment create, not marked", Down: "not marked, so the policies judge",
			Entry: registration.Entry{
				Path: registration.AttachmentMarksPath, Rules: attachments, Timeout: markTimeout, Once: true,
				Conditions: registration.Conditions(protected, registration.Condition("not-marked", "!("+registration.Marked+")")),
			},
			rule: func(served) named { return when(true, attachmentMarks()) },
		},
		{
			// Two writers corrupt a volume.
			Part: PartFencing, For: "VolumeAttachment create, marked", Down: "**refused**",
			Entry: registration.Entry{
				Path: registration.AttachmentsPath, Rules: attachments, FailClosed: true,
				Conditions: registration.Conditions(protected, registration.Condition("marked", registration.Marked)),
			},
			Cluster: readHolders(),
			rule:    func(s served) named { return when(s.fences(), s.fencing.attachments()) },
		},
		{
			// Only for changes of the out-of-service taint: heartbeats are nodes/status, and the API server compares the
			// taints of other updates. A node must never wait for Fairlead.
			Part: PartFencing, For: "Node update, when the out-of-service taint is added or removed, other than by the controller; Node delete, while the node uses volumes: a warning", Down: "allowed",
			Entry: registration.Entry{
				Path: registration.NodesPath, Rules: registration.Rules(registration.OfCluster(registration.On("", "v1", "nodes", admissionregistrationv1.Update, admissionregistrationv1.Delete))), Timeout: registration.MutateTimeout,
				Conditions: registration.Conditions(
					registration.Condition("the-taint-comes-or-goes-or-the-node-with-its-volumes", "request.operation == 'DELETE' ? oldObject.?status.?volumesInUse.orValue([]).size() > 0 : "+registration.OutOfService("object")+" != "+registration.OutOfService("oldObject")),
					notTheController,
				),
			},
			Cluster: readHolders(),
			rule:    func(s served) named { return when(s.fences(), s.fencing.nodes()) },
		},
		{
			// The next entry refuses an override that is not recorded.
			Part: PartFencing, For: "NodeFence, when an override is added, changed or removed: who and when is recorded", Down: "not recorded, so `nodefences` refuses it",
			Entry: registration.Entry{
				Path: registration.NodeFenceOverridesPath, Rules: registration.Rules(registration.OfCluster(registration.Written(own.Group, own.Version, "nodefences"))),
				Conditions: registration.Conditions(registration.Condition("an-override-changes", gateOverrideChanged), notTheController),
			},
			rule: func(s served) named { return when(s.fences(), nodeFenceOverrides()) },
		},
		{
			// An override needs its record.
			Part: PartFencing, For: "NodeFence: an override changes, others change spec, label or finalizer, or delete one that is needed", Down: "**refused**",
			Entry: registration.Entry{
				Path: registration.NodeFencesPath, Rules: registration.Rules(registration.OfCluster(registration.Changed(own.Group, own.Version, "nodefences"))), FailClosed: true,
				Conditions: registration.Conditions(
					registration.Condition("an-override-or-the-record-changes-or-it-is-forgotten", "request.operation == 'DELETE' ? "+kept("oldObject")+" : ("+gateOverrideChanged+" || "+recordChanged+")"),
					notTheController,
					// All of a kind going away, with its definition, must not wait for Fairlead.
					registration.Condition("not-the-removal-of-the-kind", "!(request.operation == 'DELETE' && request.userInfo.username == 'system:apiserver')"),
				),
			},
			Cluster: mayAsk(),
			rule:    func(s served) named { return when(s.fences(), s.fencing.nodeFences()) },
		},
	}
}

// notTheController, whose account writes the records: it must not wait for the webhook.
var notTheController = registration.Condition("not-fairlead-itself", fmt.Sprintf("request.userInfo.username != %q", registration.ControllerUser))

// gateOverrideChanged, in CEL: the override of a NodeFence's gate or its record is added, changed or removed.
var gateOverrideChanged = differs(annotation(fence.OverrideAnnotation), "''") + " || " + differs(annotation(fence.OverriddenAnnotation), "''")

// recordChanged, in CEL: the controller's spec, labels or finalizer change.
var recordChanged = strings.Join([]string{
	differs(func(object string) string { return object + ".?spec.orValue({})" }, "{}"),
	differs(label(fence.IncidentLabel), "''"), differs(label(fence.NodeLabel), "''"),
	differs(func(object string) string { return object + ".?metadata.?finalizers.orValue([])" }, "[]"),
}, " || ")

// kept, in CEL: the record has the finalizer of those that could not be recreated.
func kept(object string) string {
	return fmt.Sprintf("('%s' in %s.?metadata.?finalizers.orValue([]))", fence.RecordFinalizer, object)
}

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
