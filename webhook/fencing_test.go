package webhook

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/fence"
)

const (
	rbdDriver    = "rook-ceph.rbd.csi.ceph.com"
	cephfsDriver = "rook-ceph.cephfs.csi.ceph.com"
)

func attachmentReview(volume, node string) string {
	return reviewOf(attachmentKind, fmt.Sprintf(`"resource":{"group":"storage.k8s.io","version":"v1","resource":"volumeattachments"},"name":"csi-1","operation":"CREATE",`+
		`"object":{"metadata":{"name":"csi-1"},"spec":{"attacher":%q,"nodeName":%q,"source":{"persistentVolumeName":%q}}}`, rbdDriver, node, volume))
}

func cephVolume(name, driver string, modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{AccessModes: modes, PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name + "-handle", VolumeAttributes: map[string]string{"clusterID": "rook-ceph"}},
	}}}
}

func clusterNode(name string, ready bool, volumes ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		NodeInfo: corev1.NodeSystemInfo{BootID: name + "-boot-1"}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}},
	}}
	if ready {
		n.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	for _, v := range volumes {
		n.Status.VolumesInUse = append(n.Status.VolumesInUse, corev1.UniqueVolumeName(fence.UniqueName(rbdDriver, v+"-handle")))
	}
	return n
}

func nodeFence(node string, phase v1alpha1.NodeFencePhase, volumes ...string) *v1alpha1.NodeFence {
	n := &v1alpha1.NodeFence{ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{fence.PhaseLabel: string(phase)}}}
	n.Status = v1alpha1.NodeFenceStatus{Phase: phase, Node: v1alpha1.MachineIdentity{BootID: node + "-boot-1"}}
	for _, v := range volumes {
		n.Status.Volumes = append(n.Status.Volumes, v1alpha1.HeldVolume{PersistentVolume: v, Driver: rbdDriver, ClusterID: "rook-ceph"})
	}
	if phase != v1alpha1.NodeHealthy && phase != "" {
		n.Status.Incident = node + "-1"
	}
	return n
}

// fencingRecord is a NodeFence whose fence is asked for; confirmed has it stand.
func fencingRecord(node string, confirmed bool, volumes ...string) *v1alpha1.NodeFence {
	n := nodeFence(node, v1alpha1.NodeFencing, volumes...)
	n.Status.Reason, n.Status.Fences = fence.ReasonFencing, []v1alpha1.Fence{{Name: "f", Incident: n.Status.Incident, Driver: rbdDriver, ClusterID: "rook-ceph", State: v1alpha1.FenceRequested}}
	if confirmed {
		n.Status.Fences[0].State = v1alpha1.FenceFenced
	}
	return n
}

// waitingFor is of a node whose kubelet says that it uses what is not attached to it yet.
func waitingFor(node, volume string) *v1alpha1.NodeFence {
	n := nodeFence(node, v1alpha1.NodeHealthy, volume)
	n.Status.Volumes[0].Waiting = true
	return n
}

func attachedOn(volume, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: rbdDriver, NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
}

func operatorConfig(value string) client.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "rook-ceph-operator-config"}, Data: map[string]string{"ROOK_WATCH_FOR_NODE_FAILURE": value}}
}

func TestAttachments(t *testing.T) {
	well := clusterNode("node-2", true)
	overridden := nodeFence("node-1", v1alpha1.NodeLost, "pv-a")
	overridden.Annotations = map[string]string{
		fence.OverrideAnnotation:   "attach: it burnt",
		fence.OverriddenAnnotation: fence.Override{Gate: fence.GateAttach, By: "alice", Reason: "it burnt", Scope: "node-1-1"}.Text(),
	}
	for name, test := range map[string]struct {
		objects []client.Object
		// held by this node; "" if it may be attached.
		held string
		// mounted: there, though it is not lost.
		mounted bool
	}{
		"nobody has it":                           {objects: nil},
		"a healthy node had it":                   {objects: []client.Object{clusterNode("node-1", true), nodeFence("node-1", v1alpha1.NodeHealthy, "pv-a"), attachedOn("pv-a", "node-1")}},
		"a healthy node has it mounted":           {objects: []client.Object{clusterNode("node-1", true, "pv-a"), nodeFence("node-1", v1alpha1.NodeHealthy, "pv-a")}, held: "node-1", mounted: true},
		"healthy nodes wait for it":               {objects: []client.Object{clusterNode("node-1", true, "pv-a"), clusterNode("node-3", true, "pv-a"), waitingFor("node-1", "pv-a"), waitingFor("node-3", "pv-a")}},
		"a healthy node has it, and it is shared": {objects: []client.Object{clusterNode("node-1", true, "pv-s"), nodeFence("node-1", v1alpha1.NodeHealthy, "pv-s")}},
		"in use on a lost node without record":    {objects: []client.Object{clusterNode("node-1", false, "pv-a")}, held: "node-1"},
		"attached to a lost node":                 {objects: []client.Object{clusterNode("node-1", false), attachedOn("pv-a", "node-1")}, held: "node-1"},
		"on record of a lost node":                {objects: []client.Object{clusterNode("node-1", false), nodeFence("node-1", v1alpha1.NodeLost, "pv-a")}, held: "node-1"},
		"on record of a node that is gone":        {objects: []client.Object{nodeFence("node-1", v1alpha1.NodeLost, "pv-a")}, held: "node-1"},
		"a record that still says Healthy":        {objects: []client.Object{clusterNode("node-1", false), nodeFence("node-1", v1alpha1.NodeHealthy, "pv-a")}, held: "node-1"},
		"another volume on a lost node":           {objects: []client.Object{clusterNode("node-1", false, "pv-ab", "pv-b"), nodeFence("node-1", v1alpha1.NodeLost, "pv-ab"), attachedOn("pv-ab", "node-1")}},
		"of two, the second is lost":              {objects: []client.Object{clusterNode("node-1", true), attachedOn("pv-a", "node-1"), clusterNode("node-11", false, "pv-a")}, held: "node-11"},
		"node-11 is lost, node-1 has it":          {objects: []client.Object{clusterNode("node-1", true), attachedOn("pv-a", "node-1"), clusterNode("node-11", false), nodeFence("node-11", v1alpha1.NodeLost, "pv-b")}},
		"fenced":                                  {objects: []client.Object{clusterNode("node-1", false, "pv-a"), fencingRecord("node-1", true, "pv-a"), attachedOn("pv-a", "node-1")}},
		"the gate is overridden":                  {objects: []client.Object{clusterNode("node-1", false, "pv-a"), overridden}},
		"the lost node itself has it":             {objects: []client.Object{clusterNode("node-2", false, "pv-a"), nodeFence("node-2", v1alpha1.NodeLost, "pv-a")}},
		"Rook's leftover switch changes nothing":  {objects: []client.Object{clusterNode("node-1", false, "pv-a"), operatorConfig("false")}, held: "node-1"},
		"read only, so there is nobody to hold":   {objects: []client.Object{clusterNode("node-1", false, "pv-r"), attachedOn("pv-r", "node-1")}},
		"shared, and only not Ready":              {objects: []client.Object{clusterNode("node-1", false, "pv-s"), attachedOn("pv-s", "node-1")}},
	} {
		t.Run(name, func(t *testing.T) {
			volume := "pv-a"
			switch {
			case strings.HasPrefix(name, "read only"):
				volume = "pv-r"
			case strings.Contains(name, "shared"):
				volume = "pv-s"
			}
			objects := append(slices.Clone(test.objects), cephVolume("pv-a", rbdDriver), cephVolume("pv-r", rbdDriver, corev1.ReadOnlyMany), cephVolume("pv-s", rbdDriver, corev1.ReadWriteMany))
			if !strings.HasPrefix(name, "the lost node itself") {
				objects = append(objects, well)
			}
			response := newRig(t, fakeClient(t, objects...)).ask(t, attachmentsPath, attachmentReview(volume, "node-2"))
			if response.Allowed != (test.held == "") {
				t.Fatalf("got %+v", response)
			}
			if test.held == "" {
				return
			}
			want := fmt.Sprintf("volume %s was last on node %s, which is lost and not fenced", volume, test.held)
			if test.mounted {
				want = fmt.Sprintf("volume %s is or was still mounted on node %s", volume, test.held)
			}
			r := response.Result
			if r.Code != http.StatusForbidden || r.Reason != metav1.StatusReasonForbidden || !strings.HasPrefix(r.Message, want) {
				t.Errorf("got %+v", r)
			}
			if d := r.Details; d == nil || d.Kind != "volumeattachments" || d.Group != "storage.k8s.io" || len(d.Causes) != 1 || d.Causes[0].Field != "spec.nodeName" || d.Causes[0].Message != r.Message {
				t.Errorf("got %+v", r.Details)
			}
		})
	}
}

func TestAnAttachmentOfWhatNobodyKnowsIsRefused(t *testing.T) {
	response := newRig(t, fakeClient(t)).ask(t, attachmentsPath, attachmentReview("pv-a", "node-2"))
	if response.Allowed || response.Result.Code != 403 || response.Result.Details.Causes[0].Field != "spec.source.persistentVolumeName" {
		t.Fatalf("got %+v", response.Result)
	}
	// A pod's own volume, of a kind that was moved to CSI, has no PersistentVolume.
	inline := reviewOf(attachmentKind, `"operation":"CREATE","object":{"spec":{"attacher":"rbd.csi.ceph.com","nodeName":"node-2","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteOnce"],"csi":{"driver":"rbd.csi.ceph.com","volumeHandle":"h"}}}}}`)
	lost := clusterNode("node-1", false)
	if response := newRig(t, fakeClient(t, lost)).ask(t, attachmentsPath, inline); !response.Allowed {
		t.Fatalf("got %+v", response.Result)
	}
	lost.Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/rbd.csi.ceph.com^h"}
	if response := newRig(t, fakeClient(t, lost)).ask(t, attachmentsPath, inline); response.Allowed {
		t.Fatal("in use on a lost node, and let pass")
	}
	for mode, allowed := range map[string]bool{"Filesystem": true, "Block": false} {
		shared := reviewOf(attachmentKind, `"operation":"CREATE","object":{"spec":{"attacher":"rbd.csi.ceph.com","nodeName":"node-2","source":{"inlineVolumeSpec":{"accessModes":["ReadWriteMany"],"volumeMode":"`+mode+`","csi":{"driver":"rbd.csi.ceph.com","volumeHandle":"h"}}}}}`)
		if response := newRig(t, fakeClient(t, lost)).ask(t, attachmentsPath, shared); response.Allowed != allowed {
			t.Fatalf("shared %s, in use on a lost node: got %+v", mode, response.Result)
		}
	}
}

// What is denied is read live, and what can't be read is refused; but what is
// switched off in the configuration does not depend on reading anything.
func TestAnAttachmentIsNotJudgedByGuess(t *testing.T) {
	broken := ""
	live := interceptor.NewClient(fakeClient(t, cephVolume("pv-a", rbdDriver), clusterNode("node-1", false, "pv-a"), nodeFence("node-1", v1alpha1.NodeLost, "pv-a")), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if fmt.Sprintf("%T", o) == broken {
				return errDown
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, options ...client.ListOption) error {
			if fmt.Sprintf("%T", o) == broken {
				return errDown
			}
			return c.List(ctx, o, options...)
		},
	})
	h := newRig(t, live)
	for _, broken = range []string{"*v1.PersistentVolume", "*v1.Node", "*v1alpha1.NodeFence", "*v1alpha1.NodeFenceList", "*v1.VolumeAttachmentList", "*v1.NodeList"} {
		response := h.ask(t, attachmentsPath, attachmentReview("pv-a", "node-2"))
		if response.Allowed || response.Result.Code != 503 || !strings.Contains(response.Result.Message, errDown.Error()) {
			t.Errorf("%s: got %+v", broken, response.Result)
		}
	}
	for _, mode := range []config.Switch{config.Off, config.Guard} {
		f := newFencing(t, live)
		f.Profiles = append(f.Profiles, config.FencingProfile{Name: "rook-ceph", Namespace: "elsewhere", Mode: config.Off})
		f.Profiles[0].Mode = mode
		reads := mode != config.Off
		r := &Request[attachment]{Object: &attachment{}}
		r.Object.Spec.Attacher, r.Object.Spec.NodeName, r.Object.Spec.Source.PersistentVolumeName = rbdDriver, "node-2", "pv-a"
		if d, err := f.attachments().decide(t.Context(), r); err != nil || (d.Denial == nil) == reads {
			t.Errorf("%s: got %+v, %v", mode, d, err)
		}
	}
}

func TestAnAttachmentIsMarkedWhetherOrNotFencingIsOn(t *testing.T) {
	const plain, labelled = `{"metadata":{"name":"x"}}`, `{"metadata":{"labels":{"a":"b"}}}`
	review := func(object string) string {
		return reviewOf(attachmentKind, `"operation":"CREATE","object":`+object)
	}
	h := newRig(t, fakeClient(t))
	for object, want := range map[string]string{
		plain:    `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/judged":"true"}}]`,
		labelled: `[{"op":"add","path":"/metadata/labels/fairlead.io~1judged","value":"true"}]`,
		`{"metadata":{"labels":{"fairlead.io/judged":"true"}}}`: "",
	} {
		if got := string(h.ask(t, attachmentMarksPath, review(object)).Patch); got != want {
			t.Errorf("%s: got %s, want %s", object, got, want)
		}
	}
	var off *Fencing
	router := routes{Router: newMux(), door: newDoor(), metrics: newTestMetrics(), log: discard()}
	off.routes(router)
	if got := string((rig{Handler: router}).ask(t, attachmentMarksPath, review(plain)).Patch); got == "" {
		t.Error("not marked: the API server would judge it, though nobody wants it judged")
	}
	for _, path := range fencingPaths[1:] {
		if response := (rig{Handler: router}).ask(t, path, reviewsOfEveryPath()[path]); !response.Allowed || response.Patch != nil {
			t.Errorf("%s: got %+v", path, response)
		}
	}
}

// waiting asks for an attachment whose holder is being fenced, and returns how
// long the answer took; meanwhile is run beside it.
func waiting(t *testing.T, c client.Client, f *Fencing, timeout, fields string, meanwhile func()) (admissionv1.AdmissionResponse, time.Duration) {
	t.Helper()
	router := routes{Router: newMux(), door: newDoor(), metrics: newTestMetrics(), log: discard()}
	f.routes(router)
	review := attachmentReview("pv-a", "node-2")
	request := httptest.NewRequest(http.MethodPost, attachmentsPath+"?timeout="+timeout, strings.NewReader(review[:len(review)-2]+fields+"}}"))
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	started := time.Now()
	go meanwhile()
	router.ServeHTTP(recorder, request)
	took := time.Since(started)
	synctest.Wait()
	return answer(t, recorder.Body.String()), took
}

func TestAnAttachmentWaitsForAFenceThatIsOnItsWay(t *testing.T) {
	objects := func() []client.Object {
		return []client.Object{cephVolume("pv-a", rbdDriver), clusterNode("node-1", false, "pv-a"), clusterNode("node-2", true), fencingRecord("node-1", false, "pv-a")}
	}
	confirm := func(t *testing.T, c client.Client, after time.Duration, change func(*v1alpha1.NodeFence)) func() {
		return func() {
			time.Sleep(after)
			var n v1alpha1.NodeFence
			if err := c.Get(t.Context(), client.ObjectKey{Name: "node-1"}, &n); err != nil {
				t.Error(err)
				return
			}
			change(&n)
			if err := c.Update(t.Context(), &n); err != nil {
				t.Error(err)
			}
		}
	}
	stands := func(n *v1alpha1.NodeFence) { n.Status = fencingRecord("node-1", true, "pv-a").Status }
	nothing := func(*v1alpha1.NodeFence) {}
	for name, test := range map[string]struct {
		timeout, fields string
		change          func(*v1alpha1.NodeFence)
		prepare         func(*Fencing)
		allowed         bool
		from, to        time.Duration
	}{
		"it stands after 3 s":      {timeout: "10s", change: stands, allowed: true, from: 3 * time.Second, to: 3200 * time.Millisecond},
		"it does not come":         {timeout: "10s", change: nothing, from: 7 * time.Second, to: 7200 * time.Millisecond},
		"the deadline comes first": {timeout: "5s", change: nothing, from: 3400 * time.Millisecond, to: 3500 * time.Millisecond},
		"a deadline too short":     {timeout: "1s", change: nothing, to: 0},
		"it fails after 3 s":       {timeout: "10s", change: func(n *v1alpha1.NodeFence) { n.Status.Reason = fence.ReasonDriverFailed }, from: 3 * time.Second, to: 3200 * time.Millisecond},
		"a dry run does not wait":  {timeout: "10s", fields: `,"dryRun":true`, change: nothing, to: 0},
		"nor does who drains":      {timeout: "10s", change: nothing, prepare: func(f *Fencing) { f.Draining = func() bool { return true } }, to: 0},
		"who begins to drain while it waits": {timeout: "10s", change: nothing, to: 2200 * time.Millisecond, from: 2 * time.Second, prepare: func(f *Fencing) {
			var draining atomic.Bool
			time.AfterFunc(2*time.Second, func() { draining.Store(true) })
			f.Draining = draining.Load
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := fakeClient(t, objects()...)
				f := newFencing(t, c)
				if test.prepare != nil {
					test.prepare(f)
				}
				response, took := waiting(t, c, f, test.timeout, test.fields, confirm(t, c, 3*time.Second, test.change))
				if response.Allowed != test.allowed || took < test.from || took > test.to {
					t.Errorf("allowed %t after %s", response.Allowed, took)
				}
				if !test.allowed && response.Result.Code != http.StatusForbidden {
					t.Errorf("got %+v", response.Result)
				}
				time.Sleep(4 * time.Second) // meanwhile
			})
		})
	}
}

func TestOnlySoManyAttachmentsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := fakeClient(t, cephVolume("pv-a", rbdDriver), clusterNode("node-1", false, "pv-a"), fencingRecord("node-1", false, "pv-a"))
		f := newFencing(t, c)
		router := routes{Router: newMux(), door: newDoor(), metrics: newTestMetrics(), log: discard()}
		f.routes(router)
		var waited, refusedAtOnce atomic.Int32
		for range maxWaits + 10 {
			go func() {
				started := time.Now()
				request := httptest.NewRequest(http.MethodPost, attachmentsPath+"?timeout=10s", strings.NewReader(attachmentReview("pv-a", "node-2")))
				request.Header.Set("Content-Type", "application/json")
				router.ServeHTTP(httptest.NewRecorder(), request)
				if time.Since(started) > time.Second {
					waited.Add(1)
				} else {
					refusedAtOnce.Add(1)
				}
			}()
		}
		time.Sleep(10 * time.Second)
		if waited.Load() != maxWaits || refusedAtOnce.Load() != 10 {
			t.Errorf("%d waited, %d were answered at once", waited.Load(), refusedAtOnce.Load())
		}
	})
}

func TestTheTaintOfANode(t *testing.T) {
	const taint, other = `{"key":"node.kubernetes.io/out-of-service","value":"%s","effect":"NoExecute"}`, `{"key":"other"}`
	review := func(is, was string) string {
		return reviewOf(nodeKind, fmt.Sprintf(`"resource":{"group":"","version":"v1","resource":"nodes"},"name":"node-1","operation":"UPDATE","object":{"metadata":{"name":"node-1"},"spec":{"taints":[%s]}},"oldObject":{"metadata":{"name":"node-1"},"spec":{"taints":[%s]}}`, is, was))
	}
	x, y := fmt.Sprintf(taint, "x"), fmt.Sprintf(taint, "y")
	fenced := fencingRecord("node-1", true, "pv-a")
	rebooted := clusterNode("node-1", true)
	rebooted.Status.NodeInfo.BootID = "another"
	overridden := nodeFence("node-1", v1alpha1.NodeHealthy)
	overridden.Annotations = map[string]string{
		fence.OverrideAnnotation:   "taint: I know",
		fence.OverriddenAnnotation: fence.Override{Gate: fence.GateTaint, By: "alice", Reason: "I know", Scope: "boot node-1-boot-1"}.Text(),
	}
	for name, test := range map[string]struct {
		is, was string
		objects []client.Object
		refused string
	}{
		"comes to a Ready node":             {is: x, objects: []client.Object{clusterNode("node-1", true)}, refused: "node node-1 is Ready"},
		"comes, in an override":             {is: x, objects: []client.Object{clusterNode("node-1", true), overridden}},
		"comes to a lost node":              {is: x + "," + other, was: other, objects: []client.Object{clusterNode("node-1", false)}},
		"comes, beside a leftover switch":   {is: x, objects: []client.Object{clusterNode("node-1", true), operatorConfig("FALSE")}, refused: "node node-1 is Ready"},
		"another value":                     {is: y, was: x, objects: []client.Object{clusterNode("node-1", true)}},
		"once more, with another effect":    {is: x + "," + y, was: x, objects: []client.Object{clusterNode("node-1", true)}},
		"another taint":                     {is: other, objects: []client.Object{clusterNode("node-1", true)}},
		"goes from a fenced node":           {was: x, objects: []client.Object{clusterNode("node-1", false), fenced}, refused: "node node-1 is being fenced or is fenced, and has not booted since"},
		"goes, of a fenced node that is up": {was: x, objects: []client.Object{clusterNode("node-1", true), fenced}, refused: "node node-1 is being fenced"},
		"goes after it has booted":          {was: x, objects: []client.Object{rebooted, fenced}},
		"goes from a node without record":   {was: x, objects: []client.Object{clusterNode("node-1", true)}},
	} {
		t.Run(name, func(t *testing.T) {
			response := newRig(t, fakeClient(t, test.objects...)).ask(t, nodesPath, review(test.is, test.was))
			if response.Allowed != (test.refused == "") {
				t.Fatalf("got %+v", response)
			}
			if r := response.Result; test.refused != "" && (r.Code != 403 || !strings.HasPrefix(r.Message, test.refused) || r.Details.Causes[0].Field != "spec.taints") {
				t.Errorf("got %+v", r)
			}
		})
	}
}

func TestOverridesOfNodeFencesOverTheWire(t *testing.T) {
	const status = `"status":{"phase":"Lost","incident":"node-1-1"}`
	review := func(user, operation, annotations, old string) string {
		object, before := `{"metadata":{"name":"node-1","annotations":{`+annotations+`}},"status":{"phase":"Healthy","incident":"made-up"}}`, `{"metadata":{"name":"node-1"`+old+`},`+status+`}`
		if operation == "DELETE" {
			object = "null"
		}
		return reviewOf(nodeFenceKind, fmt.Sprintf(`"resource":{"group":"fairlead.io","version":"v1alpha1","resource":"nodefences"},"name":"node-1","operation":%q,"userInfo":{"username":%q},"object":%s,"oldObject":%s`, operation, user, object, before))
	}
	h := newRig(t, fakeClient(t))
	const asks = `"fairlead.io/override-gate":"attach: it burnt"`
	patch := string(h.ask(t, nodeFenceOverridesPath, review("alice", "UPDATE", asks, "")).Patch)
	for _, want := range []string{`"path":"/metadata/annotations/fairlead.io~1gate-overridden"`, `\"gate\":\"attach\"`, `\"by\":\"alice\"`, `\"scope\":\"node-1-1\"`} {
		if !strings.Contains(patch, want) {
			t.Errorf("%s: has no %s", patch, want)
		}
	}
	record := func(by string) string {
		return fmt.Sprintf(`,"fairlead.io/gate-overridden":%q`, fence.Override{Gate: "attach", By: by, Reason: "it burnt", Scope: "node-1-1"}.Text())
	}
	for name, test := range map[string]struct{ review, refused string }{
		"with the verb":              {review: review("alice", "UPDATE", asks+record("alice"), "")},
		"without the verb":           {review: review("jane", "UPDATE", asks+record("jane"), ""), refused: "jane may not override gates"},
		"in another's name":          {review: review("alice", "UPDATE", asks+record("bob"), ""), refused: "is written by Fairlead's mutating webhook"},
		"not recorded":               {review: review("alice", "UPDATE", asks, ""), refused: "the override is not recorded"},
		"deleted while it is lost":   {review: review("alice", "DELETE", "", ""), refused: "node node-1 is Lost: the NodeFence is the only record"},
		"deleted, in another's gate": {review: review("alice", "DELETE", "", `,"annotations":{`+asks+record("alice")+`}`), refused: "node node-1 is Lost"},
	} {
		t.Run(name, func(t *testing.T) {
			response := h.ask(t, nodeFencesPath, test.review)
			if response.Allowed != (test.refused == "") || test.refused != "" && !strings.Contains(response.Result.Message, test.refused) {
				t.Fatalf("got %+v", response.Result)
			}
		})
	}
	for user, allowed := range map[string]bool{"alice": false, controllerUser: true} {
		labelled := strings.Replace(review(user, "UPDATE", "", ""), `"annotations":{}`, `"labels":{"fairlead.io/phase":"Healthy"},"finalizers":["fairlead.io/node-fence"]`, 1)
		if response := h.ask(t, nodeFencesPath, labelled); response.Allowed != allowed {
			t.Errorf("labelled by %s: got %+v", user, response.Result)
		}
	}
}

func TestPodsWhoseVolumesAreNotAttached(t *testing.T) {
	claim := func(name, volume string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}}
	}
	lost := nodeFence("node-1", v1alpha1.NodeLost, "fs-a", "rbd-a")
	objects := []client.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: cephfsDriver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}},
		cephVolume("fs-a", cephfsDriver), cephVolume("fs-b", cephfsDriver), cephVolume("rbd-a", rbdDriver),
		cephVolume("ebs-a", "ebs.csi.aws.com"), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "nfs-a"}},
		claim("held", "fs-a"), claim("free", "fs-b"), claim("attached", "rbd-a"), claim("other", "ebs-a"), claim("nfs", "nfs-a"), claim("unbound", ""), claim("gone", "nothing"),
		clusterNode("node-1", false), lost,
	}
	h := newRig(t, fakeClient(t, objects...))
	pod := func(spec string, claims ...string) string {
		var volumes []string
		for _, c := range claims {
			volumes = append(volumes, fmt.Sprintf(`{"name":"v","persistentVolumeClaim":{"claimName":%q}}`, c))
		}
		return reviewOf(podKind, fmt.Sprintf(`"namespace":"default","name":"web","operation":"CREATE","object":{"metadata":{"name":"web"},"spec":{%s"volumes":[%s]}}`, spec, strings.Join(volumes, ",")))
	}
	response := h.ask(t, workloadPodsPath, pod("", "free", "held"))
	const want = `[{"op":"add","path":"/spec/schedulingGates","value":[{"name":"fairlead.io/fence"}]},{"op":"add","path":"/metadata/labels","value":{"fairlead.io/gated":"true"}},{"op":"add","path":"/metadata/labels/fairlead.io~1unattached-volumes","value":"true"}]`
	if string(response.Patch) != want || len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "volume fs-a of claim held was last on node node-1, which is lost and not fenced") {
		t.Errorf("got %s, %v", response.Patch, response.Warnings)
	}
	const labelled = `[{"op":"add","path":"/metadata/labels","value":{"fairlead.io/unattached-volumes":"true"}}]`
	for _, review := range []string{
		pod("", "attached", "free"), pod("", "attached", "unbound"), pod("", "gone"), pod("", "nowhere"), // no claim yet: nobody knows its driver
		reviewOf(podKind, `"namespace":"default","name":"web","operation":"CREATE","object":{"metadata":{"name":"web"},"spec":{"volumes":[{"name":"x","ephemeral":{"volumeClaimTemplate":{}}},{"name":"y","emptyDir":{}}]}}`),
	} {
		if response := h.ask(t, workloadPodsPath, review); string(response.Patch) != labelled || len(response.Warnings) > 0 {
			t.Errorf("%s\ngot %s, %v", review, response.Patch, response.Warnings)
		}
	}
	for _, review := range []string{
		pod("", "attached", "other", "nfs"), pod(`"nodeName":"node-2",`, "held"), pod(""),
		reviewOf(podKind, `"namespace":"default","name":"web","operation":"CREATE","object":{"metadata":{"name":"web"},"spec":{"volumes":[{"name":"y","emptyDir":{}}]}}`),
	} {
		if response := h.ask(t, workloadPodsPath, review); !response.Allowed || response.Patch != nil {
			t.Errorf("%s\ngot %s, %v", review, response.Patch, response.Warnings)
		}
	}
}
