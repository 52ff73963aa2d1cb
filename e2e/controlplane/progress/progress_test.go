package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestElapsedFormat(t *testing.T) {
	for duration, want := range map[time.Duration]string{
		0:                                     "0.0s",
		340 * time.Millisecond:                "0.3s",
		8440 * time.Millisecond:               "8.4s",
		9960 * time.Millisecond:               "10s",
		42*time.Second + 600*time.Millisecond: "43s",
		59*time.Second + 700*time.Millisecond: "1m00s",
		72 * time.Second:                      "1m12s",
		59*time.Minute + 59*time.Second:       "59m59s",
		62 * time.Minute:                      "1h2m",
	} {
		if got := Elapsed(duration); got != want {
			t.Errorf("%v is written %q, want %q", duration, got, want)
		}
	}
}

func TestLongStepReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		err := New(&out, 15*time.Second).Do(3, 8, "building kube-apiserver v1.36.3", func() error {
			time.Sleep(40 * time.Second)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Join([]string{
			"[3/8] building kube-apiserver v1.36.3 ...",
			"[3/8] building kube-apiserver v1.36.3 ... 15s so far",
			"[3/8] building kube-apiserver v1.36.3 ... 30s so far",
			"[3/8] building kube-apiserver v1.36.3 ... 40s",
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
		err := New(&out, 15*time.Second).DoQuick(1, 4, "etcd", func() error {
			time.Sleep(300 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := "[1/4] etcd ... 0.3s\n"; out.String() != want {
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
	if want := "[1/2] building etcd ...\n"; out.String() != want {
		t.Errorf("progress is %q, want %q", out.String(), want)
	}
}
