package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLongStepReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := New(&out, 15*time.Second).Do(3, 8, "building kube-apiserver v1.37.2", func() error {
			time.Sleep(40 * time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{
			"[3/8] building kube-apiserver v1.37.2 ...",
			"[3/8] building kube-apiserver v1.37.2 ... 20s so far",
			"[3/8] building kube-apiserver v1.37.2 ... 35s so far",
			"[3/8] building kube-apiserver v1.37.2 ... 40s",
			"",
		}, "\n")
		if out.String() != want {
			t.Errorf("progress is\n%s\nwant\n%s", out.String(), want)
		}
	})
}

func TestQuickStepPrintsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := New(&out, 15*time.Second).Do(1, 4, "etcd", func() error {
			time.Sleep(300 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := "[1/4] etcd ... 300ms\n"; out.String() != want {
			t.Errorf("progress is %q, want %q", out.String(), want)
		}
	})
}

func TestFailedStepIsNotReportedAsDone(t *testing.T) {
	var out bytes.Buffer
	failure := errors.New("no")
	if err := New(&out, time.Hour).Do(1, 2, "building etcd", func() error { return failure }); err != failure {
		t.Errorf("error is %v, want the step's own", err)
	}
	if out.Len() > 0 {
		t.Errorf("progress is %q", out.String())
	}
}
