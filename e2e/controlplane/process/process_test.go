package process

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func script(t *testing.T, name, commands string) Spec {
	t.Helper()
	return Spec{Name: name, Path: "/bin/sh", Args: []string{"-c", commands}, Dir: t.TempDir(), Log: filepath.Join(t.TempDir(), name+".log")}
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func TestProcessDeathReportsEndOfLog(t *testing.T) {
	group := NewGroup()
	defer group.Kill()
	if _, err := group.Start(script(t, "survivor", "exec sleep 60")); err != nil {
		t.Fatal(err)
	}
	if _, err := group.Start(script(t, "victim", "for i in 1 2 3; do echo line $i; done; exit 7")); err != nil {
		t.Fatal(err)
	}
	select {
	case dead := <-group.Deaths():
		if dead.Spec.Name != "victim" || dead.Err() == nil || !strings.Contains(dead.Err().Error(), "7") {
			t.Errorf("%s died with %v", dead.Spec.Name, dead.Err())
		}
		tail, err := Tail(dead.Spec.Log, 2)
		if err != nil || tail != "line 2\nline 3" {
			t.Errorf("the end of the log is %q, %v", tail, err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nobody told about the death")
	}
}

func TestKilledGroupLeavesNothing(t *testing.T) {
	group := NewGroup()
	var pids []int
	for _, name := range []string{"first", "stubborn"} {
		process, err := group.Start(script(t, name, `trap "" TERM; while :; do sleep 0.05; done`))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, process.Pid)
	}
	group.Kill()
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	if _, err := group.Start(script(t, "late", "exit 0")); err == nil {
		t.Error("a killed group starts processes")
	}
	group.Kill() // again, for processes that are gone
}

func TestMissingProgramIsAnError(t *testing.T) {
	spec := script(t, "nothing", "")
	spec.Path = "/no/such/program"
	if _, err := Start(spec); err == nil {
		t.Error("no error")
	}
}
