package settingsapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestChangeGoesToTheSettingsKind(t *testing.T) {
	const (
		base    = "/namespaces/longhorn-system/settings"
		ownPath = "/apis/fairlead.io/v1alpha1" + base
		lhPath  = "/apis/longhorn.io/v1beta2" + base
		merge   = "application/merge-patch+json"
	)
	value := "kube-system/other-net"
	create := map[string]any{
		"apiVersion": "fairlead.io/v1alpha1", "kind": "Setting", "metadata": map[string]any{"namespace": "longhorn-system", "name": settingName}, "value": "kube-system/storage-net",
	}
	patch := func(path string) write {
		return write{"PATCH", path + "/" + settingName, aliceToken, merge, map[string]any{"metadata": map[string]any{}, "value": "kube-system/storage-net"}}
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    write
	}{
		"no objects":                       {nil, write{"POST", ownPath, aliceToken, "application/json", create}},
		"only Fairlead's":                  {[]client.Object{ours(nil)}, patch(ownPath)},
		"only Longhorn's":                  {[]client.Object{theirs("")}, patch(lhPath)},
		"both, Fairlead's without a value": {[]client.Object{ours(nil), theirs("")}, patch(lhPath)},
		"both, Fairlead's with a value":    {[]client.Object{ours(&value), theirs("")}, patch(lhPath)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, test.objects...)
			w := f.do("PUT", one, set)
			must.True(t, w.Code == http.StatusOK, "got %d %s", w.Code, w.Body)
			must.Check(t, len(f.writes) == 1 && reflect.DeepEqual(f.writes[0], test.want), "got  %+v\nwant %+v", f.writes, test.want)
		})
	}
}

func TestAnswerHasWarningsAndTheNewState(t *testing.T) {
	f := newFixture(t, theirs(""))
	f.warnings = []string{"accepted; will be applied when these volumes are detached: pvc-a (node-2)", "second", "second"}
	f.onWrite = func(got write) {
		s := theirs("")
		err := f.objects.Get(t.Context(), client.ObjectKeyFromObject(s), s)
		s.Value = got.body["value"].(string)
		if err := errors.Join(err, f.objects.Update(t.Context(), s)); err != nil {
			t.Error(err)
		}
	}
	before := f.do("GET", one, "").Header().Get("ETag")
	w := f.do("PUT", one, set, "If-Match", `"other", `+before)
	var got v1.Setting
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &got))
	must.True(t, w.Code == http.StatusOK && got.Value == "kube-system/storage-net" && got.Source == "longhorn" && reflect.DeepEqual(got.Warnings, f.warnings[:2]),
		"got %d %+v", w.Code, got)
	after := w.Header().Get("ETag")
	must.Check(t, after != before && after == f.do("GET", one, "").Header().Get("ETag"), "ETag was %s, is %s", before, after)
	metadata := f.writes[0].body["metadata"].(map[string]any)
	must.Check(t, metadata["resourceVersion"] != nil, "the change has no precondition")
	must.Equal(t, f.do("PUT", one, set, "If-Match", before).Code, http.StatusPreconditionFailed, "the same again")
}

func TestRefusalsAreForwardedVerbatim(t *testing.T) {
	invalid := &metav1.Status{
		Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid, Message: `the setting is invalid: must be <namespace>/<name>`,
		Details: &metav1.StatusDetails{Name: settingName, Group: "longhorn.io", Kind: "settings", Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldValueInvalid, Field: "value", Message: "must be <namespace>/<name>"},
		}},
	}
	conflict := &metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Message: "the object has been modified"}
	forbidden := &metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "settings is forbidden"}
	for name, test := range map[string]struct {
		refusal *metav1.Status
		ifMatch string
		code    int
	}{
		"by the webhook":             {invalid, "", 422},
		"by RBAC, after the review":  {forbidden, "", 403},
		"conflict, without If-Match": {conflict, "", 409},
		"conflict, with If-Match":    {conflict, "*", 412},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, theirs(""))
			f.refusal = test.refusal.DeepCopy()
			f.refusal.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			w := f.do("PUT", one, set, "If-Match", test.ifMatch)
			got := status(t, w)
			must.True(t, w.Code == test.code && got.Code == int32(test.code) && got.Kind == "Status", "got %d %s", w.Code, w.Body)
			must.Check(t, test.code == 412 || got.Reason == test.refusal.Reason && got.Message == test.refusal.Message && reflect.DeepEqual(got.Details, test.refusal.Details),
				"got %s", w.Body)
		})
	}
}

func TestBrokenConnectionIsNotQuoted(t *testing.T) {
	f := newFixture(t, theirs(""))
	f.onWrite = func(write) { panic(http.ErrAbortHandler) }
	w := f.do("PUT", one, set)
	must.Check(t, w.Code == http.StatusBadGateway && !strings.Contains(w.Body.String(), "127.0.0.1"), "got %d %s", w.Code, w.Body)
}
