package main

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/fairlead-io/fairlead/api/rest/v1"
)

// hostile text colours, clears, moves and turns round what a terminal shows.
const hostile = "a\x1b[2J\u009b31m\r\b\x7f\u202e\u2066b\n\n\tc"

// spoil puts hostile text into every string, and one element into every list.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(hostile)
	case reflect.Pointer:
		if v.Type() != reflect.TypeFor[*time.Time]() {
			v.Set(reflect.New(v.Type().Elem()))
			spoil(v.Elem())
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		spoil(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				spoil(v.Field(i))
			}
		}
	default: // a time or a number has no text
	}
}

func spoiled[T any]() T {
	var value T
	spoil(reflect.ValueOf(&value).Elem())
	return value
}

func checkPrinted(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); i >= 0 {
		t.Errorf("%q", text[max(0, i-20):])
	}
}

func TestNoValueSteersTerminal(t *testing.T) {
	now := time.Now()
	plan, unchanged := spoiled[planView](), spoiled[planView]()
	plan.Settings = append(plan.Settings, plan.Settings[0], plan.Settings[0])
	plan.Settings[0].Changed, plan.Settings[1].appliedNow = true, true
	for name, test := range map[string]struct {
		value any
		table func(io.Writer) error
	}{
		"settings":    {spoiled[v1.SettingList](), func(out io.Writer) error { return writeSettings(out, spoiled[[]v1.Setting](), now) }},
		"setting":     {spoiled[v1.Setting](), func(out io.Writer) error { return writeSetting(out, spoiled[v1.Setting](), now) }},
		"plan":        {unchanged, func(out io.Writer) error { return writePlan(out, plan) }},
		"plan as is":  {unchanged, func(out io.Writer) error { return writePlan(out, unchanged) }},
		"fences":      {spoiled[fenceViews](), func(out io.Writer) error { return writeFences(out, spoiled[fenceViews]().Data, now) }},
		"fence":       {spoiled[fenceView](), func(out io.Writer) error { return writeFence(out, spoiled[fenceViews]().Data, now) }},
		"drill":       {spoiled[drillView](), func(out io.Writer) error { return writeDrill(out, spoiled[drillView]()) }},
		"nfs":         {spoiled[nfsViews](), func(out io.Writer) error { return writeNFS(out, spoiled[nfsViews]().Data, now) }},
		"nfs service": {spoiled[nfsView](), func(out io.Writer) error { return writeNFSService(out, spoiled[nfsView](), now) }},
		"nfs plan":    {spoiled[nfsPlanView](), func(out io.Writer) error { return writeNFSPlan(out, spoiled[nfsPlanView]()) }},
	} {
		t.Run(name, func(t *testing.T) {
			var table, document strings.Builder
			if err := test.table(&table); err != nil {
				t.Fatal(err)
			}
			checkPrinted(t, table.String())
			if strings.ContainsAny(table.String(), "\t") || strings.Contains(table.String(), "b\n") {
				t.Errorf("a value has lines or columns of its own:\n%s", table.String())
			}
			if err := writeJSON(&document, test.value); err != nil {
				t.Fatal(err)
			}
			checkPrinted(t, document.String())
			again := reflect.New(reflect.TypeOf(test.value))
			if err := json.Unmarshal([]byte(document.String()), again.Interface()); err != nil || !reflect.DeepEqual(again.Elem().Interface(), test.value) {
				t.Errorf("the JSON says %+v, %v", again.Elem(), err)
			}
		})
	}
}

// An API server, or who wrote what it quotes, may put anything into a message.
func TestNoErrorSteersTerminal(t *testing.T) {
	server := serveAPI(t, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusForbidden,
		Reason: metav1.StatusReasonForbidden, Message: hostile,
	})
	kubeconfig := kubeconfigOf(t, server)
	for _, command := range []string{"settings", "plan", "fences", "fences drill node-1", "nfs", "nfs plan a/b"} {
		t.Run(command, func(t *testing.T) {
			var out, errOut strings.Builder
			code := run(t.Context(), append(strings.Fields(command), "--kubeconfig", kubeconfig), &out, &errOut)
			if code != 1 || !strings.Contains(errOut.String(), "fairlead: ") || out.String() != "" {
				t.Errorf("code %d, %q, %q", code, out.String(), errOut.String())
			}
			checkPrinted(t, errOut.String())
		})
	}
}
