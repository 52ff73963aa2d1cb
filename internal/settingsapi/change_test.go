package settingsapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

func TestWhereAChangeGoes(t *testing.T) {
	const (
		base    = "/namespaces/longhorn-system/settings"
		ownPath = "/apis/fairlead.io/v1alpha1" + base
		lhPath  = "/apis/longhorn.io/v1beta2" + base
		merge   = "application/merge-patch+json"
	)
	value := "kube-system/other-net"
	empty := map[string]any{}
	for _, test := range []struct {
		name    string
		objects []client.Object
		want    write
	}{
		{"nothing is there", nil, write{"POST", ownPath, aliceToken, "application/json", map[string]any{
			"apiVersion": "fairlead.io/v1alpha1", "kind": "Setting",
			"metadata": map[string]any{"namespace": "longhorn-system", "name": settingName}, "value": "kube-system/storage-net",
		}}},
		{"only Fairlead's own", []client.Object{ours(nil)}, write{"PATCH", ownPath + "/" + settingName, aliceToken, merge,
			map[string]any{"metadata": empty, "value": "kube-system/storage-net"}}},
		{"only the storage system's", []client.Object{theirs("")}, write{"PATCH", lhPath + "/" + settingName, aliceToken, merge,
			map[string]any{"metadata": empty, "value": "kube-system/storage-net"}}},
		{"both, Fairlead's without a value", []client.Object{ours(nil), theirs("")}, write{"PATCH", lhPath + "/" + settingName, aliceToken, merge,
			map[string]any{"metadata": empty, "value": "kube-system/storage-net"}}},
		{"both, Fairlead's with a value", []client.Object{ours(&value), theirs("")}, write{"PATCH", lhPath + "/" + settingName, aliceToken, merge,
			map[string]any{"metadata": empty, "value": "kube-system/storage-net"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, test.objects...)
			if w := f.do("PUT", one, set); w.Code != http.StatusOK {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if len(f.writes) != 1 || !reflect.DeepEqual(f.writes[0], test.want) {
				t.Errorf("got  %+v\nwant %+v", f.writes, test.want)
			}
		})
	}
}

func TestWarningsAndTheNewStateAreAnswered(t *testing.T) {
	f := newFixture(t, theirs(""))
	f.warnings = []string{"accepted; will be applied when these volumes are detached: pvc-a (node-2)", "second", "second"}
	f.onWrite = func(got write) {
		var s = theirs("")
		if err := f.objects.Get(t.Context(), client.ObjectKeyFromObject(s), s); err != nil {
			t.Error(err)
		}
		s.Value = got.body["value"].(string)
		if err := f.objects.Update(t.Context(), s); err != nil {
			t.Error(err)
		}
	}
	before := f.do("GET", one, "").Header().Get("ETag")
	w := f.do("PUT", one, set, "If-Match", `"other", `+before)
	var got v1.Setting
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusOK || got.Value != "kube-system/storage-net" || got.Source != "longhorn" || !reflect.DeepEqual(got.Warnings, f.warnings[:2]) {
		t.Fatalf("got %d %+v", w.Code, got)
	}
	if after := w.Header().Get("ETag"); after == before || after != f.do("GET", one, "").Header().Get("ETag") {
		t.Errorf("ETag was %s, is %s", before, after)
	}
	if metadata := f.writes[0].body["metadata"].(map[string]any); metadata["resourceVersion"] == nil {
		t.Error("the change went out without its precondition")
	}
	if w := f.do("PUT", one, set, "If-Match", before); w.Code != http.StatusPreconditionFailed {
		t.Errorf("the same again: got %d", w.Code)
	}
}

func TestRefusalsArePassedOnWordForWord(t *testing.T) {
	invalid := &metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: `the setting is invalid: must be <namespace>/<name>`,
		Details: &metav1.StatusDetails{Name: settingName, Group: "longhorn.io", Kind: "settings", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "value", Message: "must be <namespace>/<name>"},
		}},
	}
	conflict := &metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	forbidden := &metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "settings is forbidden"}
	for _, test := range []struct {
		name    string
		refusal *metav1.Status
		ifMatch string
		code    int
	}{
		{"by the webhook", invalid, "", 422},
		{"by RBAC, between the review and the change", forbidden, "", 403},
		{"as a conflict that nobody asked to be told of", conflict, "", 409},
		{"as a conflict", conflict, "*", 412},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, theirs(""))
			f.refusal = test.refusal.DeepCopy()
			f.refusal.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w := f.do("PUT", one, set, "If-Match", test.ifMatch)
			var got metav1.Status
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != test.code || got.Code != int32(test.code) || got.Kind != "Status" {
				t.Fatalf("got %d %s", w.Code, w.Body)
			}
			if test.code == 412 {
				return
			}
			if got.Reason != test.refusal.Reason || got.Message != test.refusal.Message || !reflect.DeepEqual(got.Details, test.refusal.Details) {
				t.Errorf("got %s", w.Body)
			}
		})
	}
}

func TestAConnectionThatBreaksIsNotQuoted(t *testing.T) {
	f := newFixture(t, theirs(""))
	f.onWrite = func(write) { panic(http.ErrAbortHandler) }
	if w := f.do("PUT", one, set); w.Code != http.StatusBadGateway || strings.Contains(w.Body.String(), "127.0.0.1") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
