package machine

import (
	"bufio"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// waits is set for a test that waits until its machine is asked to end.
const waits = "FAIRLEAD_MACHINE_TEST_WAITS"

// TestMain gives the tests a machine where there can be one.
func TestMain(m *testing.M) {
	if why := Unavailable(); why != "" {
		fmt.Println("no machine is made here:", why)
		os.Exit(0)
	}
	if os.Getenv(waits) != "" {
		os.Exit(Run(Spec{}, m.Run)) // a machine in a machine
	}
	os.Exit(Run(Spec{
		Addresses: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00:96::/112")},
		Hosts:     map[string]netip.Addr{"some.service": netip.MustParseAddr("10.96.1.2")},
		Folders:   []string{"/var/lib"},
		Files:     []File{{Path: "/var/lib/mine/text", Text: "hello"}, {Path: "/of-the-machine/text", Text: "hello"}},
		Binds:     map[string]string{"/host/proc": "/proc"},
		Added:     map[string]string{"/sbin/say-goodbye": "/bin/true"},
		Programs:  []File{{Path: "say-hello", Text: "#!/bin/sh\necho hello\n"}},
		Listen:    "127.0.0.1:0",
	}, m.Run))
}

func TestEveryAddressReachesAListener(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	for _, host := range []string{"127.0.0.1", "10.96.1.2", "10.96.200.7", "some.service", "fd00:96::7"} {
		connection, err := net.Dial("tcp", net.JoinHostPort(host, fmt.Sprint(port)))
		if err != nil {
			t.Errorf("calling %s: %v", host, err)
			continue
		}
		connection.Close()
	}
	if connection, err := net.Dial("tcp", "10.97.0.1:1"); err == nil {
		connection.Close()
		t.Error("an address that the machine does not have was reached")
	}
}

func TestFilesAndProgramsAreInTheMachineOnly(t *testing.T) {
	for _, path := range []string{"/var/lib/mine/text", "/of-the-machine/text"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != "hello" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	if out, err := exec.Command("say-hello").Output(); err != nil || string(out) != "hello\n" {
		t.Errorf("the program says %q, %v", out, err)
	}
	if out, err := exec.Command("/sbin/say-goodbye").CombinedOutput(); err != nil {
		t.Errorf("the added program: %s, %v", out, err)
	}
	if entries, err := os.ReadDir("/sbin"); err != nil || len(entries) < 2 {
		t.Errorf("/sbin has %d entries, %v", len(entries), err)
	}
	if err := owned(Spec{Folders: []string{"/var/lib"}}, "/var/log/text"); err == nil {
		t.Error("a file may be written to the real machine")
	}
}

func TestProcessesAreThoseOfTheMachine(t *testing.T) {
	for _, proc := range []string{"/proc", "/host/proc"} {
		status, err := os.ReadFile(proc + "/1/comm")
		if err != nil || !strings.HasPrefix(string(status), "machine.test") && !strings.HasPrefix(string(status), "exe") {
			t.Errorf("the first process in %s is %s, %v", proc, status, err)
		}
	}
}

func TestListenerIsOfTheRealMachine(t *testing.T) {
	listener, err := Listener()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if connection, err := net.Dial("tcp", listener.Addr().String()); err == nil {
		connection.Close()
		t.Errorf("%s is reached inside the machine", listener.Addr())
	}
}

func TestTerminationReachesWhatRunsInside(t *testing.T) {
	if os.Getenv(waits) != "" {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		fmt.Println("ready")
		<-asked
		fmt.Println("ends in order")
		return
	}
	another := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, insideVariable+"=") {
			another.Env = append(another.Env, variable)
		}
	}
	another.Env = append(another.Env, waits+"=1")
	another.Stderr = os.Stderr
	out, err := another.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := another.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "ready" {
			if err := another.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := another.Wait(); err != nil || !slices.Contains(said, "ends in order") {
		t.Errorf("it said %q: %v", said, err)
	}
}
