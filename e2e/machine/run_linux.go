package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Variables by which this program knows itself again inside.
const (
	rootVariable   = "FAIRLEAD_MACHINE_ROOT" // where the first process makes the machine's root
	insideVariable = "FAIRLEAD_MACHINE_INSIDE"
)

const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Unavailable says why there can be no machine here; it is empty where there can be.
func Unavailable() string {
	if os.Getenv(insideVariable) != "" || os.Getenv(rootVariable) != "" {
		return ""
	}
	if os.Geteuid() != 0 {
		return "it needs root"
	}
	probe := exec.Command("true")
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := probe.Run(); err != nil {
		return fmt.Sprintf("namespaces cannot be made: %v", err)
	}
	return ""
}

// Run runs a function in a machine of its own and returns the exit status. It starts
// this program again, with the same arguments, so it is called before anything else is
// done.
func Run(spec Spec, inside func() int) int {
	switch {
	case os.Getenv(insideVariable) != "":
		if spec.Listen != "" {
			syscall.CloseOnExec(listenerFile)
		}
		return inside()
	case os.Getenv(rootVariable) != "":
		return beFirst(spec)
	}
	status, err := start(spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting a machine:", err)
		return 1
	}
	return status
}

// stopTimeout is for what is inside to end in order.
const stopTimeout = time.Minute

// start runs the first process of a machine to its end.
func start(spec Spec) (int, error) {
	root, err := os.MkdirTemp("", "fairlead-machine-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(root) // empty out here
	// The kernel ties the first process to this thread.
	runtime.LockOSThread()
	first := exec.Command("/proc/self/exe", os.Args[1:]...)
	first.Args[0] = os.Args[0]
	first.Env = append(os.Environ(), rootVariable+"="+root)
	first.Stdin, first.Stdout, first.Stderr = os.Stdin, os.Stdout, os.Stderr
	if spec.Listen != "" {
		file, err := listen(spec.Listen)
		if err != nil {
			return 0, err
		}
		defer file.Close()
		first.ExtraFiles = []*os.File{file}
	}
	first.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces, Pdeathsig: syscall.SIGKILL}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	if err := first.Start(); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	go func() {
		<-asked
		_ = first.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(stopTimeout):
			_ = first.Process.Kill() // all that is in the machine ends with its first process
		}
	}()
	err = first.Wait()
	close(ended)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

// beFirst makes the machine, starts this program in it once more, and takes care of
// processes whose parents have ended, as the first process of a machine has to.
func beFirst(spec Spec) int {
	if os.Getpid() != 1 {
		fmt.Fprintf(os.Stderr, "%s is set, but this is not the first process of a machine\n", rootVariable)
		return 1
	}
	if err := errors.Join(makeNetwork(spec), makeRoot(spec, os.Getenv(rootVariable))); err != nil {
		fmt.Fprintln(os.Stderr, "making a machine:", err)
		return 1
	}
	var env []string
	for _, variable := range os.Environ() {
		if path, found := strings.CutPrefix(variable, "PATH="); found {
			variable = "PATH=" + programs + ":" + path
		}
		if !strings.HasPrefix(variable, rootVariable+"=") {
			env = append(env, variable)
		}
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	if spec.Listen != "" {
		files = append(files, os.NewFile(listenerFile, spec.Listen))
	}
	child, err := os.StartProcess("/proc/self/exe", os.Args, &os.ProcAttr{Env: append(env, insideVariable+"=1"), Files: files})
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting in a machine:", err)
		return 1
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-asked
		_ = child.Signal(syscall.SIGTERM)
	}()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "waiting in a machine:", err)
			return 1
		case pid == child.Pid && status.Exited():
			return status.ExitStatus()
		case pid == child.Pid && status.Signaled():
			fmt.Fprintln(os.Stderr, "ended by", status.Signal())
			return 1
		}
	}
}
