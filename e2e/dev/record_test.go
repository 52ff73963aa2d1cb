package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSecondActFollowsTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.cast")
	if err := os.WriteFile(path, []byte("{\"version\":2}\n[41.5,\"o\",\"x\"]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := lengthOf(path); got != 41500*time.Millisecond {
		t.Errorf("the first act took %s", got)
	}
}

func TestTourIsRecorded(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"demo.txt", "$ kubectl get nodes\nnode-1\nlater\n"},
		{"demo.cast", `,"o","$ kubectl get nodes\r\nnode-1\r\n"]`},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		t.Setenv(recordVariable, path)
		for i, text := range []string{"$ kubectl get nodes\nnode-1\n", "later\n"} {
			out, end, err := stage(i == 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(out, text)
			if err := end(); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(data), test.want) {
			t.Errorf("%s has (%v)\n%s", test.name, err, data)
		}
		if strings.HasSuffix(path, ".cast") && strings.Count(string(data), "\n") != 3 {
			t.Errorf("%s has not a header and two events:\n%s", test.name, data)
		}
	}
}
