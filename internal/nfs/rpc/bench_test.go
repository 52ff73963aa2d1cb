package rpc

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// serveVariable makes the test binary a server, so that its CPU time is not counted.
const serveVariable = "FAIRLEAD_BENCHMARK_NFS_SERVER"

// serveForBenchmark is a server of NFS v3 on all of 127.0.0.0/8. It ends when its input does.
func serveForBenchmark() {
	listener, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(addressOf(listener).Port())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer client.Close(); answers(nil, exporting("/"))(client) }()
		}
	}()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

func startChild(b *testing.B) uint16 {
	b.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), serveVariable+"=1")
	child.Stderr = os.Stderr
	stdin, inErr := child.StdinPipe()
	stdout, outErr := child.StdoutPipe()
	if inErr != nil || outErr != nil || child.Start() != nil {
		b.Fatal("the server does not start: ", inErr, outErr)
	}
	b.Cleanup(func() { stdin.Close(); _ = child.Wait() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	port, portErr := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	must.True(b, err == nil && portErr == nil, "the server says %q: %v", line, err)
	return uint16(port)
}

// cpu is the time this process has used, in user and kernel. On loopback the kernel's work for the server's side
// of a connection is partly counted, too.
func cpu(b *testing.B) time.Duration {
	var usage syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// loopback is one of a thousand backends.
func loopback(i int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), port)
}

// BenchmarkProbe says how much more a probe costs than a check that connects and
// closes (a kubelet's tcpSocket), which takes a server that hangs for healthy.
func BenchmarkProbe(b *testing.B) {
	port := startChild(b)
	connect := 0.0
	b.Run("connect alone", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		before := cpu(b)
		for b.Loop() {
			i++
			conn, err := dialAndReset(b.Context(), loopback(i%1000, port))
			must.Do(b, err)
			conn.Close()
		}
		connect = float64((cpu(b) - before).Microseconds()) / float64(i)
		b.ReportMetric(connect, "CPU-µs/probe")
	})
	for _, c := range []struct {
		name   string
		target Target
	}{
		{"NULL", Target{Versions: []int32{V3}}},
		{"share", Target{Versions: []int32{V3}, Shares: []string{"/"}, MountPort: port}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			before := cpu(b)
			for b.Loop() {
				i++
				c.target.Address = loopback(i%1000, port)
				result := askWith(b, c.target, dialAndReset)
				must.True(b, result.Verdict == Healthy, "%v", result.Message)
			}
			each := float64((cpu(b) - before).Microseconds()) / float64(i)
			b.ReportMetric(each, "CPU-µs/probe")
			if connect > 0 {
				b.ReportMetric(each/connect, "times-connect")
			}
		})
	}
}

// dialAndReset leaves no sockets in TIME_WAIT: a loop makes more of them than the machine has room for.
func dialAndReset(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	c, err := DialTCP(ctx, address)
	if err != nil {
		return nil, err
	}
	return c, c.(*net.TCPConn).SetLinger(0)
}

// BenchmarkThousandBackends probes as a controller does: 1,000 backends every 5 s. Each iteration takes an interval.
// The server answers NULL for any version.
func BenchmarkThousandBackends(b *testing.B) {
	port := startChild(b)
	b.Run("NULL v3", func(b *testing.B) { probeThousand(b, Target{Versions: []int32{V3}}, port) })
	b.Run("NULL v3 and v4", func(b *testing.B) { probeThousand(b, Target{Versions: []int32{V3, V4}}, port) })
	b.Run("share v3", func(b *testing.B) {
		probeThousand(b, Target{Versions: []int32{V3}, Shares: []string{"/"}, MountPort: port}, port)
	})
}

func probeThousand(b *testing.B, target Target, port uint16) {
	const backends, interval = 1000, 5 * time.Second
	target.Interval, target.Timeout = interval, time.Second
	var probes, bad atomic.Int64
	report := func(_ int, r Result) {
		probes.Add(1)
		if r.Verdict != Healthy {
			bad.Add(1)
		}
	}
	targets := map[int]Target{}
	for i := range backends {
		target.Address = loopback(i, port)
		targets[i] = target
	}
	prober := NewProber(Probe, report)
	prober.Set(all, targets)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() { defer close(done); prober.Run(ctx) }()
	for probes.Load() < backends { // the first probes come all at once
		time.Sleep(10 * time.Millisecond)
	}
	used, counted, started := cpu(b), probes.Load(), time.Now()
	for b.Loop() {
		time.Sleep(interval)
	}
	used, counted = cpu(b)-used, probes.Load()-counted
	b.ReportMetric(100*used.Seconds()/time.Since(started).Seconds(), "%core")
	b.ReportMetric(float64(used.Microseconds())/float64(counted), "CPU-µs/probe")
	b.ReportMetric(float64(bad.Load()), "failed")
	cancel()
	<-done
}
