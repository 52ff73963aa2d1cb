package webhook

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/internal/testkit/objects"
	"github.com/fairlead-io/fairlead/internal/testkit/reviews"
	"github.com/fairlead-io/fairlead/webhook/admission"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

func attachmentReview(volume, node string) string {
	return reviews.Of(reviews.Attachment, fmt.Sprintf(`"resource":{"group":"storage.k8s.io","version":"v1","resource":"volumeattachments"},"name":"csi-1","operation":"CREATE",`+
		`"object":{"metadata":{"name":"csi-1"},"spec":{"attacher":%q,"nodeName":%q,"source":{"persistentVolumeName":%q}}}`, objects.RBD, node, volume))
}

// cephVolume has a handle that is named after it.
func cephVolume(name string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	return objects.CephVolume(name, objects.RBD, "rook-ceph", func(pv *corev1.PersistentVolume) {
		if len(modes) > 0 {
			pv.Spec.AccessModes = modes
		}
	})
}

// When the nodes became Ready, and when they were lost.
var since, lostSince = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// readyNode uses volumes.
func readyNode(name string, volumes ...string) *corev1.Node {
	n := objects.Node(name, objects.Readiness(corev1.ConditionTrue, since))
	for _, v := range volumes {
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, uniqueName(v))
	}
	return n
}

func uniqueName(volume string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(fence.UniqueName(objects.RBD, "handle-"+volume))
}

func lostNode(name string, volumes ...string) *corev1.Node {
	return objects.With(readyNode(name, volumes...), objects.Readiness(corev1.ConditionUnknown, lostSince))
}

func attached(n *corev1.Node, volume string) *corev1.Node {
	n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: uniqueName(volume)})
	return n
}

// nodeFence is the record of a working node.
func nodeFence(node string, volumes ...string) *v1alpha1.NodeFence {
	boot, ready := v1alpha1.Boot{SystemUUID: "machine-" + node, BootID: "boot-" + node}, metav1.NewTime(since)
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: recordName(node)}}
	n.Spec = v1alpha1.NodeFenceSpec{NodeName: node, Boot: boot, NodeUID: types.UID("uid-" + node), ReadyChanged: &ready}
	for _, v := range volumes {
		n.Spec.Volumes = append(n.Spec.Volumes, v1alpha1.HeldVolume{PersistentVolume: v, Driver: objects.RBD, VolumeHandle: "handle-" + v, ClusterID: "rook-ceph", Shared: v == "pv-s"})
	}
	n.Status.Phase = v1alpha1.NodeHealthy
	return n
}

func recordName(node string) string {
	return fence.RecordName(node, v1alpha1.Boot{SystemUUID: "machine-" + node, BootID: "boot-" + node})
}

// lostRecord is the record of a lost node.
func lostRecord(node string, volumes ...string) *v1alpha1.NodeFence {
	n, lost := nodeFence(node, volumes...), metav1.NewTime(lostSince)
	n.Labels = map[string]string{fence.IncidentLabel: "true"}
	n.Spec.ReadyChanged, n.Spec.LostSince, n.Status.Phase = &lost, &lost, v1alpha1.NodeLost
	return n
}

// fencingRecord is a NodeFence with a requested or a confirmed fence.
func fencingRecord(node string, confirmed bool, volumes ...string) *v1alpha1.NodeFence {
	n := lostRecord(node, volumes...)
	n.Spec.Fences = []v1alpha1.Fence{{Name: "f", Driver: objects.RBD, ClusterID: "rook-ceph", State: v1alpha1.FenceRequested}}
	n.Status.Phase, n.Status.Reason = v1alpha1.NodeFencing, fence.ReasonFencing
	if confirmed {
		n.Spec.Fences[0].State = v1alpha1.FenceFenced
	}
	return n
}

// released by a person, for this loss.
func released(n *v1alpha1.NodeFence) *v1alpha1.NodeFence {
	for i := range n.Spec.Volumes {
		n.Spec.Volumes[i].Released = true
	}
	return n
}

func attachedOn(volume, node string) *storagev1.VolumeAttachment {
	return objects.Attachment(volume, node, objects.RBD)
}

// requested by alice, and not carried out yet.
func requested(n *v1alpha1.NodeFence, gate, reason string) *v1alpha1.NodeFence {
	n.Annotations = map[string]string{fence.OverrideAnnotation: gate + ": " + reason, fence.OverriddenAnnotation: fence.Request{Gate: gate, By: "alice", Reason: reason}.Text()}
	return n
}

func TestAttachments(t *testing.T) {
	healthy, lost := readyNode("node-1"), lostNode("node-1")
	using := lostNode("node-1", "pv-a")
	const isLost, isMounted = "volume pv-a was last on node %s, which is lost and not fenced", "volume pv-a is or was still mounted on node %s"
	for name, test := range map[string]struct {
		volume  string
		objects []client.Object
		// node that holds the volume, and the message with its name. Without, the volume may be attached.
		node, message string
	}{
		"no holder":                           {"pv-a", nil, "", ""},
		"last on a healthy node":              {"pv-a", []client.Object{healthy, nodeFence("node-1", "pv-a"), attachedOn("pv-a", "node-1")}, "", ""},
		"mounted on a healthy node":           {"pv-a", []client.Object{readyNode("node-1", "pv-a"), nodeFence("node-1", "pv-a")}, "node-1", isMounted},
		"healthy nodes wait for the volume":   {"pv-a", []client.Object{readyNode("node-1", "pv-a"), readyNode("node-3", "pv-a"), nodeFence("node-1"), nodeFence("node-3")}, "", ""},
		"shared, mounted on a healthy node":   {"pv-s", []client.Object{readyNode("node-1", "pv-s"), nodeFence("node-1", "pv-s")}, "", ""},
		"in use on a lost node, not recorded": {"pv-a", []client.Object{using}, "node-1", isLost},
		"attached to a lost node":             {"pv-a", []client.Object{attached(lostNode("node-1"), "pv-a"), attachedOn("pv-a", "node-1")}, "node-1", isLost},
		"recorded on a lost node":             {"pv-a", []client.Object{lost, lostRecord("node-1", "pv-a")}, "node-1", isLost},
		"recorded on a deleted node":          {"pv-a", []client.Object{lostRecord("node-1", "pv-a")}, "node-1", isLost},
		"lost node, record still Healthy":     {"pv-a", []client.Object{lost, nodeFence("node-1", "pv-a")}, "node-1", isLost},
		"another volume on a lost node":       {"pv-a", []client.Object{lostNode("node-1", "pv-ab", "pv-b"), lostRecord("node-1", "pv-ab"), attachedOn("pv-ab", "node-1")}, "", ""},
		"second of two nodes is lost":         {"pv-a", []client.Object{healthy, attachedOn("pv-a", "node-1"), lostNode("node-11", "pv-a")}, "node-11", isLost},
		"a lost node with another volume":     {"pv-a", []client.Object{healthy, attachedOn("pv-a", "node-1"), lostNode("node-11"), lostRecord("node-11", "pv-b")}, "", ""},
		"fenced":                              {"pv-a", []client.Object{using, fencingRecord("node-1", true, "pv-a"), attachedOn("pv-a", "node-1")}, "", ""},
		"released by a person":                {"pv-a", []client.Object{using, released(lostRecord("node-1", "pv-a"))}, "", ""},
		"back to the lost node":               {"pv-a", []client.Object{lostNode("node-2", "pv-a"), lostRecord("node-2", "pv-a")}, "", ""},
		"read-only":                           {"pv-r", []client.Object{using, attachedOn("pv-r", "node-1")}, "", ""},
		"shared, node only not Ready":         {"pv-s", []client.Object{lostNode("node-1", "pv-s"), attachedOn("pv-s", "node-1")}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := append(slices.Clone(test.objects), cephVolume("pv-a"), cephVolume("pv-r", corev1.ReadOnlyMany), cephVolume("pv-s", corev1.ReadWriteMany))
				if !slices.ContainsFunc(all, func(o client.Object) bool { return o.GetName() == "node-2" }) {
					all = append(all, readyNode("node-2"))
				}
				response := newRig(t, fakeClient(t, all...)).ask(t, registration.AttachmentsPath, attachmentReview(test.volume, "node-2"))
				must.True(t, response.Allowed == (test.node == ""), "got %+v", response)
				if test.node == "" {
					return
				}
				r := response.Result
				must.Check(t, r.Code == http.StatusForbidden && r.Reason == metav1.StatusReasonForbidden && strings.HasPrefix(r.Message, fmt.Sprintf(test.message, test.node)),
					"got %+v", r)
				if d := r.Details; d == nil || d.Kind != "volumeattachments" || d.Group != "storage.k8s.io" || len(d.Causes) != 1 || d.Causes[0].Field != "spec.nodeName" || d.Causes[0].Message != r.Message {
					t.Errorf("got %+v", r.Details)
				}
			})
		})
	}
}

func TestAttachmentOfUnknownVolumeIsRefused(t *testing.T) {
	response := newRig(t, fakeClient(t)).ask(t, registration.AttachmentsPath, attachmentReview("pv-a", "node-2"))
	must.True(t, !response.Allowed && response.Result.Code == 403 && response.Result.Details.Causes[0].Field == "spec.source.persistentVolumeName",
		"got %+v", response.Result)
}

// A pod's own volume, of a kind that was moved to CSI, has no PersistentVolume.
func TestAttachmentsOfInlineVolumes(t *testing.T) {
	idle, using := lostNode("node-1"), lostNode("node-1")
	using.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/rbd.csi.ceph.com^h"}
	for name, test := range map[string]struct {
		node    client.Object
		spec    string
		allowed bool
	}{
		"not in use":       {idle, `"accessModes":["ReadWriteOnce"]`, true},
		"in use":           {using, `"accessModes":["ReadWriteOnce"]`, false},
		"shared, in use":   {using, `"accessModes":["ReadWriteMany"],"volumeMode":"Filesystem"`, true},
		"shared raw block": {using, `"accessModes":["ReadWriteMany"],"volumeMode":"Block"`, false},
	} {
		review := reviews.Of(reviews.Attachment, `"operation":"CREATE","object":{"spec":{"attacher":"rbd.csi.ceph.com","nodeName":"node-2","source":{"inlineVolumeSpec":{`+test.spec+`,"csi":{"driver":"rbd.csi.ceph.com","volumeHandle":"h"}}}}}`)
		response := newRig(t, fakeClient(t, test.node)).ask(t, registration.AttachmentsPath, review)
		must.Check(t, response.Allowed == test.allowed, "%s: got %+v", name, response.Result)
	}
}

// Where fencing is off, an attachment does not depend on any read.
func TestAttachmentIsRefusedIfFactsAreUnreadable(t *testing.T) {
	broken := ""
	live := unreadable(fakeClient(t, cephVolume("pv-a"), lostNode("node-1", "pv-a"), lostRecord("node-1", "pv-a")), &broken)
	h := newRig(t, live)
	for _, broken = range []string{"*v1.PersistentVolume", "*v1.Node", "*v1alpha1.NodeFence", "*v1alpha1.NodeFenceList"} {
		response := h.ask(t, registration.AttachmentsPath, attachmentReview("pv-a", "node-2"))
		must.Check(t, !response.Allowed && response.Result.Code == 503 && strings.Contains(response.Result.Message, errDown.Error()),
			"%s: got %+v", broken, response.Result)
	}
	for mode, reads := range map[config.Switch]bool{config.Off: false, config.Guard: true} {
		f := newFencing(t, live)
		f.Profiles = append(f.Profiles, config.FencingProfile{Name: "rook-ceph", Namespace: "elsewhere", Mode: config.Off})
		f.Profiles[0].Mode = mode
		r := &admission.Request[attachment]{Object: &attachment{}}
		r.Object.Spec.Attacher, r.Object.Spec.NodeName, r.Object.Spec.Source.PersistentVolumeName = objects.RBD, "node-2", "pv-a"
		d, err := f.attachments().Decide(t.Context(), r)
		must.Check(t, err == nil && (d.Denial == nil) != reads, "%s: got %+v, %v", mode, d, err)
	}
}

func TestAttachmentIsMarkedEvenIfFencingIsOff(t *testing.T) {
	const plain, labelled = `{"metadata":{"name":"x"}}`, `{"metadata":{"labels":{"a":"b"}}}`
	review := func(object string) string {
		return reviews.Of(reviews.Attachment, `"operation":"CREATE","object":`+object)
	}
	h := newRig(t, fakeClient(t))
	for object, want := range map[string]string{
		plain:    `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/judged":"true"}}]`,
		labelled: `[{"op":"add","path":"/metadata/labels/fairlead.io~1judged","value":"true"}]`,
		`{"metadata":{"labels":{"fairlead.io/judged":"true"}}}`: "",
	} {
		must.Equal(t, string(h.ask(t, registration.AttachmentMarksPath, review(object)).Patch), want, "%s", object)
	}
	off := newRoutes(nil)
	must.Check(t, off.ask(t, registration.AttachmentMarksPath, review(plain)).Patch != nil, "fencing is off: not marked, so that the policies decide")
	for _, path := range fencingPaths[1:] {
		response := off.ask(t, path, reviewsOfEveryPath()[path])
		must.Check(t, response.Allowed && response.Patch == nil, "%s: got %+v", path, response)
	}
}

func TestAttachmentWaitsForFenceInProgress(t *testing.T) {
	confirm := func(n *v1alpha1.NodeFence) { n.Spec.Fences[0].State = v1alpha1.FenceFenced }
	fail := func(n *v1alpha1.NodeFence) { n.Spec.Fences[0].Failures = 1 }
	keep := func(*v1alpha1.NodeFence) {}
	never, always := func() func() bool { return func() bool { return false } }, func() func() bool { return func() bool { return true } }
	after2s := func() func() bool {
		started := time.Now()
		return func() bool { return time.Since(started) >= 2*time.Second }
	}
	for name, test := range map[string]struct {
		timeout, fields string
		change          func(*v1alpha1.NodeFence)
		draining        func() func() bool
		allowed         bool
		from, to        time.Duration
		others          []client.Object
	}{
		"confirmed after 3 s":     {"10s", "", confirm, never, true, 3 * time.Second, 3200 * time.Millisecond, nil},
		"not confirmed":           {"10s", "", keep, never, false, 7 * time.Second, 7200 * time.Millisecond, nil},
		"deadline comes first":    {"5s", "", keep, never, false, 3400 * time.Millisecond, 3500 * time.Millisecond, nil},
		"deadline too short":      {"1s", "", keep, never, false, 0, 0, nil},
		"fails after 3 s":         {"10s", "", fail, never, false, 3 * time.Second, 3200 * time.Millisecond, nil},
		"dry run does not wait":   {"10s", `,"dryRun":true`, keep, never, false, 0, 0, nil},
		"draining server":         {"10s", "", keep, always, false, 0, 0, nil},
		"server drains after 2 s": {"10s", "", keep, after2s, false, 2 * time.Second, 2200 * time.Millisecond, nil},
		// Until the holder that it waits for changes, only that holder is read.
		"confirmed after 3 s, another holder is lost too": {"10s", "", confirm, never, false, 3 * time.Second, 3200 * time.Millisecond,
			[]client.Object{lostNode("node-3", "pv-a"), lostRecord("node-3", "pv-a")}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeClient(t, append(test.others, cephVolume("pv-a"), lostNode("node-1", "pv-a"), readyNode("node-2"), fencingRecord("node-1", false, "pv-a"))...)
				f := newFencing(t, c)
				f.Draining = test.draining()
				time.AfterFunc(3*time.Second, func() {
					n := testkit.Get[v1alpha1.NodeFence](t, c, "", recordName("node-1"))
					test.change(n)
					err := c.Update(t.Context(), n)
					must.Check(t, err == nil, "%v", err)
				})
				review, started := attachmentReview("pv-a", "node-2"), time.Now()
				response := newRoutes(f).ask(t, registration.AttachmentsPath+"?timeout="+test.timeout, review[:len(review)-2]+test.fields+"}}")
				took := time.Since(started)
				must.Check(t, response.Allowed == test.allowed && took >= test.from && took <= test.to, "allowed %t after %s", response.Allowed, took)
				must.Check(t, test.allowed || response.Result.Code == http.StatusForbidden, "got %+v", response.Result)
				time.Sleep(4 * time.Second) // until the change is written
			})
		})
	}
}

func TestNumberOfWaitingAttachmentsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newRoutes(newFencing(t, fakeClient(t, cephVolume("pv-a"), lostNode("node-1", "pv-a"), fencingRecord("node-1", false, "pv-a"))))
		var waited, refusedAtOnce atomic.Int32
		for range maxWaits + 10 {
			go func() {
				started := time.Now()
				h.post(registration.AttachmentsPath+"?timeout=10s", attachmentReview("pv-a", "node-2"))
				if time.Since(started) > time.Second {
					waited.Add(1)
				} else {
					refusedAtOnce.Add(1)
				}
			}()
		}
		time.Sleep(10 * time.Second)
		must.Check(t, waited.Load() == maxWaits && refusedAtOnce.Load() == 10, "%d waited, %d were refused at once", waited.Load(), refusedAtOnce.Load())
	})
}

func TestOutOfServiceTaint(t *testing.T) {
	const taint, other = `{"key":"node.kubernetes.io/out-of-service","value":"%s","effect":"NoExecute"}`, `{"key":"other"}`
	review := func(is, was string) string {
		return reviews.Of(reviews.Node, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"nodes"},"name":"node-1","operation":"UPDATE","object":{"metadata":{"name":"node-1"},"spec":{"taints":[%s]}},"oldObject":{"metadata":{"name":"node-1"},"spec":{"taints":[%s]}}`, is, was))
	}
	x, y := fmt.Sprintf(taint, "x"), fmt.Sprintf(taint, "y")
	ready, lost, fenced, rebooted := readyNode("node-1"), lostNode("node-1"), fencingRecord("node-1", true, "pv-a"), readyNode("node-1")
	rebooted.Status.NodeInfo.BootID = "another"
	for name, test := range map[string]struct {
		is, was string
		objects []client.Object
		refused string
	}{
		"added to a Ready node":            {x, "", []client.Object{ready}, "node node-1 is Ready"},
		"added, overridden":                {x, "", []client.Object{ready, requested(nodeFence("node-1"), fence.GateTaint, "I know")}, ""},
		"added to a lost node":             {x + "," + other, other, []client.Object{lost}, ""},
		"another value":                    {y, x, []client.Object{ready}, ""},
		"added twice":                      {x + "," + y, x, []client.Object{ready}, ""},
		"another taint":                    {other, "", []client.Object{ready}, ""},
		"removed from a fenced node":       {"", x, []client.Object{lost, fenced}, "node node-1 is being fenced or is fenced, and has not booted since"},
		"removed from a fenced Ready node": {"", x, []client.Object{ready, fenced}, "node node-1 is being fenced"},
		"removed after a reboot":           {"", x, []client.Object{rebooted, fenced}, ""},
		"removed, no record":               {"", x, []client.Object{ready}, ""},
	} {
		response := newRig(t, fakeClient(t, test.objects...)).ask(t, registration.NodesPath, review(test.is, test.was))
		must.True(t, response.Allowed == (test.refused == ""), "%s: got %+v", name, response)
		r := response.Result
		must.Check(t, test.refused == "" || r.Code == 403 && strings.HasPrefix(r.Message, test.refused) && r.Details.Causes[0].Field == "spec.taints", "%s: got %+v", name, r)
	}
}

func TestDeletionOfWorkingNodeIsWarnedOf(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		warns   string
	}{
		"Ready, with volumes":    {[]client.Object{readyNode("node-1"), nodeFence("node-1", "pv-a")}, "fairlead: node node-1 is Ready and has volumes (pv-a)"},
		"Ready, without volumes": {[]client.Object{readyNode("node-1"), nodeFence("node-1")}, ""},
		"lost":                   {[]client.Object{lostNode("node-1"), lostRecord("node-1", "pv-a")}, ""},
		"no record":              {[]client.Object{readyNode("node-1")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			review := reviews.Of(reviews.Node, `"resource":{"group":"","version":"v1","resource":"nodes"},"name":"node-1","operation":"DELETE","object":null,"oldObject":{"metadata":{"name":"node-1"}}`)
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, registration.NodesPath, review)
			must.True(t, response.Allowed, "got %+v", response)
			must.Check(t, strings.HasPrefix(strings.Join(response.Warnings, ""), test.warns) && (test.warns == "") == (len(response.Warnings) == 0), "got %q", response.Warnings)
		})
	}
}

func TestNodeFenceOverrides(t *testing.T) {
	const lost = `"nodeName":"node-1","lostSince":"2026-01-02T00:00:00Z","volumes":[{"persistentVolume":"pv-a","driver":"d"}]`
	review := func(user, operation, annotations, spec string) string {
		object := `{"metadata":{"name":"node-1-a","annotations":{` + annotations + `}},"spec":{` + spec + `}}`
		if operation == "DELETE" {
			object = "null"
		}
		return reviews.Of(reviews.NodeFence, fmt.Sprintf(`"resource":{"group":"fairlead.io","version":"v1alpha1","resource":"nodefences"},"name":"node-1-a","operation":%q,"userInfo":{"username":%q},"object":%s,"oldObject":{"metadata":{"name":"node-1-a"},"spec":{%s}}`, operation, user, object, lost))
	}
	h := newRig(t, fakeClient(t))
	const asks = `"fairlead.io/override-gate":"attach: it burnt"`
	patch := string(h.ask(t, registration.NodeFenceOverridesPath, review("alice", "UPDATE", asks, lost)).Patch)
	for _, want := range []string{`"path":"/metadata/annotations/fairlead.io~1gate-overridden"`, `\"gate\":\"attach\"`, `\"by\":\"alice\"`, `\"reason\":\"it burnt\"`} {
		must.Check(t, strings.Contains(patch, want), "%s: has no %s", patch, want)
	}
	record := func(by string) string {
		return fmt.Sprintf(`,"fairlead.io/gate-overridden":%q`, fence.Request{Gate: "attach", By: by, Reason: "it burnt"}.Text())
	}
	for name, test := range map[string]struct{ review, refused string }{
		"with the verb":      {review: review("alice", "UPDATE", asks+record("alice"), lost)},
		"without the verb":   {review: review("jane", "UPDATE", asks+record("jane"), lost), refused: "jane may not override gates"},
		"in another name":    {review: review("alice", "UPDATE", asks+record("bob"), lost), refused: "is written by Fairlead's mutating webhook"},
		"not recorded":       {review: review("alice", "UPDATE", asks, lost), refused: "the override is not recorded"},
		"the memory changed": {review: review("alice", "UPDATE", "", `"nodeName":"node-1"`), refused: "is written by Fairlead's controller, which fences by it"},
		"deleted while lost": {review: review("alice", "DELETE", "", ""), refused: "the NodeFence is the only record of the volumes and fences of node node-1"},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.ask(t, registration.NodeFencesPath, test.review)
			must.True(t, response.Allowed == (test.refused == "") && (test.refused == "" || strings.Contains(response.Result.Message, test.refused)),
				"got %+v", response.Result)
		})
	}
	for user, allowed := range map[string]bool{"alice": false, registration.ControllerUser: true} {
		labelled := strings.Replace(review(user, "UPDATE", "", lost), `"annotations":{}`, `"labels":{"fairlead.io/in-incident":"true"},"finalizers":["fairlead.io/node-fence"]`, 1)
		response := h.ask(t, registration.NodeFencesPath, labelled)
		must.Check(t, response.Allowed == allowed, "labelled by %s: got %+v", user, response.Result)
	}
}
