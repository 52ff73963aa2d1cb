package conntrack

import (
	"errors"
	"flag"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

const inside = "FAIRLEAD_TEST_CONNTRACK"

// TestMain leaves out the test that needs a network namespace, with a line that says why.
func TestMain(m *testing.M) {
	if output, err := inNamespace("nft", "list", "tables").CombinedOutput(); err != nil && os.Getenv(inside) == "" {
		fmt.Fprintf(os.Stderr, "SKIPPED: TestClientOfHungServerReachesTheNext needs a network namespace and nft (Debian: nftables, iproute2): %v %s\n", err, output)
		if err := flag.Set("test.skip", "^TestClientOfHungServerReachesTheNext$"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// inNamespace is a command in a network namespace of its own, which needs no root where the kernel permits user namespaces.
func inNamespace(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	return cmd
}

// The test runs itself in a network namespace of its own, where nft does what kube-proxy does.
func TestClientOfHungServerReachesTheNext(t *testing.T) {
	if os.Getenv(inside) != "" {
		failOver(t)
		return
	}
	if _, err := exec.LookPath("nft"); err != nil {
		t.Skip("nft, by which kube-proxy's rules are made here, is not installed (Debian's package nftables)")
	}
	cmd := inNamespace("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inside+"=1")
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	t.Logf("%s", output)
}

func failOver(t *testing.T) {
	run := func(name string, args ...string) {
		t.Helper()
		if output, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, output)
		}
	}
	run("ip", "link", "set", "lo", "up")
	run("ip", "route", "add", "default", "dev", "lo")
	run("ip", "address", "add", "10.0.0.1/32", "dev", "lo")
	run("ip", "address", "add", "10.0.0.2/32", "dev", "lo")
	point := func(server string) {
		t.Helper()
		run("nft", "add table ip t; flush table ip t; add chain ip t out { type nat hook output priority -100; }; add rule ip t out ip daddr 10.96.0.1 tcp dport 2049 dnat to "+server+":2049")
	}
	accepted := make(chan net.Conn, 4)
	for _, server := range []string{"10.0.0.1:2049", "10.0.0.2:2049"} {
		l, err := net.Listen("tcp", server)
		must.Do(t, err)
		go func() {
			for {
				c, err := l.Accept() // never answers, never closes
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
	}
	point("10.0.0.1")
	// As the Linux client does, the client connects again from the same port.
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 800}, Timeout: 10 * time.Second, Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) })
	}}
	client, err := dialer.Dial("tcp", "10.96.0.1:2049")
	must.Do(t, err)
	if got := (<-accepted).LocalAddr().String(); got != "10.0.0.1:2049" {
		t.Fatal(got)
	}
	point("10.0.0.2")
	if _, err := client.Write([]byte("request")); err != nil {
		t.Fatal(err)
	}
	client.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the entry alone keeps the connection on the first server: %v", err)
	}

	f := Frontends{address: {next}}
	began := time.Now()
	if n, err := (Kernel{}).Delete([]netip.AddrPort{second, netip.MustParseAddrPort("10.96.0.1:111")}, Frontends{second: {next}, netip.MustParseAddrPort("10.96.0.1:111"): {next}}.IsStale); n != 0 || err != nil {
		t.Fatalf("%d entries of others deleted, %v", n, err)
	}
	if n, err := (Kernel{}).Delete([]netip.AddrPort{netip.MustParseAddrPort("10.96.0.1:111"), netip.MustParseAddrPort("[fd00::1]:2049")}, func(e Entry) bool {
		t.Errorf("the kernel sends %v, which goes to another port or has another family", e)
		return false
	}); n != 0 || err != nil {
		t.Fatalf("%d entries of others deleted, %v", n, err)
	}
	if n, err := (Kernel{}).Delete([]netip.AddrPort{address}, f.IsStale); n != 1 || err != nil {
		t.Fatalf("%d entries deleted, %v", n, err)
	}
	// The client need not send anything: its socket is closed.
	client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNABORTED) && !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("the client's socket was not closed (the kernel needs CONFIG_INET_DIAG_DESTROY): %v", err)
	}
	client.Close()
	if client, err = dialer.Dial("tcp", "10.96.0.1:2049"); err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if got := (<-accepted).LocalAddr().String(); got != "10.0.0.2:2049" {
		t.Fatal(got)
	}
	t.Logf("on the second server %s after the entry was deleted", time.Since(began).Round(time.Microsecond))
	if n, err := (Kernel{}).Delete([]netip.AddrPort{address}, f.IsStale); n != 0 || err != nil {
		t.Fatalf("%d entries of the second server deleted, %v", n, err)
	}
}
