package typed

import (
	"slices"
	"strings"
	"testing"
)

const page = "# Page\n\n```\nmake up\nexport A=1\n```\n\n```yaml\na: b\n```\n\n<!-- not typed: needs Docker -->\n```\ndocker build\n```\n" +
	"\n```\n$ kubectl get pods \\\n  -n x\nNAME\npod\n\n$ kubectl apply -f a.yaml\n$ ls\nNAME  AGE\n```\n"

func TestCommandsOfPageAreRead(t *testing.T) {
	got, err := Commands(page)
	want := []Command{
		{Line: 4, Text: "make up\nexport A=1"},
		{Line: 18, Text: "kubectl get pods \\\n  -n x", Shown: "NAME\npod\n\n", Shows: true},
		{Line: 23, Text: "kubectl apply -f a.yaml"},
		{Line: 24, Text: "ls", Shown: "NAME  AGE\n", Shows: true},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if recorded := got[3].Record(got[1].Record(page, "NAME\nnew"), "A\nB\n"); !strings.Contains(recorded, "-n x\nNAME\nnew\n\n$ kubectl apply") || !strings.Contains(recorded, "$ ls\nA\nB\n```") {
		t.Errorf("recorded as\n%s", recorded)
	}
	if _, err := Commands("```\nmake"); err == nil {
		t.Error("a block without an end is accepted")
	}
}

func TestOutputMatchesButForWhatDiffersByRun(t *testing.T) {
	for _, test := range []struct {
		shown, printed string
		want           bool
	}{
		{"NAME   AGE\nweb-0   4s\n", "NAME    AGE\nweb-0   2m10s\n", true},
		{"web-0 4s", "web-1 4s", false},
		{"pod longhorn-csi-plugin-x7k2p at 127.0.0.1:1", "pod longhorn-csi-plugin-bcd4f at 127.0.0.1:28811", true},
		{"pod/fairlead-webhook-5f7d9c6b44-x7k2p deleted", "pod/fairlead-webhook-684cb9f5d8-qqqqq deleted", true},
		{"server at 192.168.50.9, fd00:50::9", "server at 192.168.50.12, fd00:50::c", true},
		{"server  share-manager-pvc-117d3553  node-1  ok", "server  share-manager-pvc-117d3553  node-2  ok", true},
		{"server at 192.168.70.10", "server at 192.168.70.11", false},
		{"a\n...\nc", "a\nb\nb\nc", true},
		{"a\n...\nc", "a\nb", false},
		{"a", "a\nb", false},
		{"a\nb", "a", false},
	} {
		if got := Matches(test.shown, test.printed); got != test.want {
			t.Errorf("Matches(%q, %q) is %t", test.shown, test.printed, got)
		}
	}
}
