package typed

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const page = "# Page\n\n```\nmake up\nexport A=1\n```\n\n```yaml\na: b\n```\n\n<!-- not typed: needs Docker -->\n```\ndocker build\n```\n" +
	"\n```\n$ kubectl get pods \\\n  -n x\nNAME\npod\n\n$ kubectl apply -f a.yaml\n$ ls\nNAME  AGE\n```\n" +
	"1. Taint:\n\n   <!-- typed with NODE=node-1 -->\n   ```\n   $ kubectl taint nodes NODE NODES\n   node/NODE tainted\n   ```\n" +
	"\n<!-- typed with NODE=node-1 -->\n| question | command |\n| --- | --- |\n| why | `kubectl get node NODE`, `fairlead status`: see `.status` |\n\n| `kubectl not typed` |\n"

func TestCommandsOfPageAreRead(t *testing.T) {
	got, err := Commands(page)
	want := []Command{
		{Line: 4, Text: "make up\nexport A=1"},
		{Line: 18, Text: "kubectl get pods \\\n  -n x", Shown: "NAME\npod\n\n", Shows: true},
		{Line: 23, Text: "kubectl apply -f a.yaml"},
		{Line: 24, Text: "ls", Shown: "NAME  AGE\n", Shows: true},
		{Line: 31, Text: "kubectl taint nodes NODE NODES", With: "NODE=node-1 ", Shown: "node/NODE tainted\n", Shows: true},
		{Line: 38, Text: "kubectl get node NODE", With: "NODE=node-1 "},
		{Line: 38, Text: "fairlead status", With: "NODE=node-1 "},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if last := got[4]; last.Typed() != "kubectl taint nodes node-1 NODES" || last.Wanted() != "node/node-1 tainted\n" {
		t.Errorf("%q is typed, and %q wanted", last.Typed(), last.Wanted())
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
		{"fairlead-node-1-4ce3c5c62b-71c86d0484  Fenced", "fairlead-node-1-56c8a65aac-71c86d0484  Fenced", true},
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

// A page that no test types says so at each block of commands.
func TestEveryPageIsTypedOrSaysWhyNot(t *testing.T) {
	listed := map[string]bool{}
	for _, p := range slices.Concat(Longhorn, Fencing, Nodes) {
		listed[p.Name] = true
	}
	err := filepath.WalkDir("../..", func(file string, entry fs.DirEntry, err error) error {
		switch name := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && file != "../.." && (strings.HasPrefix(name, ".") || name == "bin" || name == "dist"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".md":
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		commands, err := Commands(string(text))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		name := strings.TrimPrefix(filepath.ToSlash(file), "../../")
		switch {
		case listed[name] && len(commands) == 0:
			t.Errorf("%s has no command to type", name)
		case !listed[name] && len(commands) > 0:
			t.Errorf("%s:%d: no test types this: list the page in pages.go, or write <!-- not typed: REASON --> above the block", name, commands[0].Line)
		}
		delete(listed, name)
		return nil
	})
	if err != nil || len(listed) > 0 {
		t.Errorf("pages that are listed and missing: %v (%v)", listed, err)
	}
}
