package cluster

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/fence"
)

// The test's own binary is the program that is run.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "as-a-command" {
		switch os.Args[2] {
		case "say":
			os.Stdout.WriteString(strings.Join(os.Args[3:], "|"))
			os.Exit(0)
		case "fail":
			os.Stdout.WriteString("partly")
			os.Stderr.WriteString(strings.Repeat("x", 10*maxComplaint) + "\n")
			os.Exit(38)
		case "hang":
			time.Sleep(time.Minute)
		}
	}
	os.Exit(m.Run())
}

func TestALocalCommandHasNoShellAndIsBounded(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	output, err := LocalRunner{}.Run(t.Context(), self, "as-a-command", "say", "$HOME; `id`", "--image=a b")
	if err != nil || string(output) != "$HOME; `id`|--image=a b" {
		t.Errorf("got %q, %v", output, err)
	}
	output, err = LocalRunner{}.Run(t.Context(), self, "as-a-command", "fail")
	if err == nil || string(output) != "partly" || len(err.Error()) > 2*maxComplaint {
		t.Errorf("got %q, %v", output, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err = (LocalRunner{}).Run(ctx, self, "as-a-command", "hang"); err == nil || time.Since(started) > 10*time.Second {
		t.Errorf("got %v after %v", err, time.Since(started))
	}
	if _, err = (LocalRunner{}).Run(t.Context(), "there-is-no-such-program"); err == nil {
		t.Error("no error")
	}
}

func TestOutputIsBounded(t *testing.T) {
	l := &limited{most: 3}
	if _, err := l.Write([]byte("abcd")); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
	l = &limited{most: 3, cut: true}
	for range 2 {
		if n, err := l.Write([]byte("ab")); n != 2 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
	if l.taken.String() != "aba" {
		t.Errorf("got %q", l.taken.String())
	}
}

func TestTheToolboxIsAPodThatIsReady(t *testing.T) {
	toolbox := func(name string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: name, Labels: map[string]string{"app": "rook-ceph-tools"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "tools"}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	for name, test := range map[string]struct {
		pods []client.Object
		want string
	}{
		"the first that is Ready": {[]client.Object{toolbox("a", corev1.ConditionFalse), toolbox("c", corev1.ConditionTrue), toolbox("b", corev1.ConditionTrue)}, "b"},
		"none":                    {[]client.Object{toolbox("a", corev1.ConditionFalse)}, ""},
	} {
		c := fake.NewClientBuilder().WithObjects(test.pods...).Build()
		pod, err := NewToolboxRunner(nil, c, fence.RookCeph()).pod(t.Context())
		if test.want == "" && !errors.Is(err, errNoToolbox) || test.want != "" && (err != nil || pod.Name != test.want) {
			t.Errorf("%s: got %v, %v", name, pod, err)
		}
	}
}

// The command goes to the API server as it is, word by word.
func TestACommandInTheToolboxIsAskedForWordByWord(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.Path+" "+strings.Join(r.URL.Query()["command"], "|")+" in "+r.URL.Query().Get("container"))
		http.Error(w, "not you", http.StatusForbidden)
	}))
	defer server.Close()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "rook-ceph", Name: "tools", Labels: map[string]string{"app": "rook-ceph-tools"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "tools"}}},
		Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	_, err := NewToolboxRunner(&rest.Config{Host: server.URL}, fake.NewClientBuilder().WithObjects(pod).Build(), fence.RookCeph()).Run(t.Context(), "rbd", "status", "--image=a; b")
	const what = " /api/v1/namespaces/rook-ceph/pods/tools/exec rbd|status|--image=a; b in tools"
	if err == nil || len(asked) != 1 || asked[0] != "GET"+what {
		t.Errorf("asked %q, %v", asked, err)
	}
}
