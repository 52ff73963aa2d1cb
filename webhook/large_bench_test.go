package webhook

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/bench/apiserver"
)

// What one review may take in a large cluster: memory beyond what the process
// has at rest, and CPU time of the process.
const (
	mostReviewMiB  = 16
	mostReviewTime = 200 * time.Millisecond
)

// serveEnv has the test binary be the API server, so that its own work is not measured.
const serveEnv = "FAIRLEAD_BENCH_SERVE"

func TestServeLargeCluster(t *testing.T) {
	if os.Getenv(serveEnv) == "" {
		t.Skip("only as another process of BenchmarkLargeReviews")
	}
	server := largeCluster(t, apiserver.Large)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() { _ = http.Serve(listener, server) }()
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever started it ends
}

func serveLargeCluster(b *testing.B) (url string) {
	b.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestServeLargeCluster$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://") {
			return lines.Text()
		}
	}
	b.Fatal("the API server did not start")
	return ""
}

// BenchmarkLargeReviews measures the reviews that gather much, beside an API
// server in another process. It encodes in advance, so a real one takes longer to answer.
func BenchmarkLargeReviews(b *testing.B) {
	url := serveLargeCluster(b)
	handler := newRig(b, liveOver(b, largeCluster(b, apiserver.Size{Nodes: 1}), url), volumeNetworksOn)
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as in manifests/base/webhook.yaml
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(96 << 20))
	for _, review := range largeReviews() {
		b.Run(review.name, func(b *testing.B) {
			review.ask(b, handler) // the server encodes
			var peaks []float64
			var cpu, wall []time.Duration
			for b.Loop() {
				peak := watchHeap()
				began, used := time.Now(), cpuTime(b)
				review.ask(b, handler)
				wall, cpu = append(wall, time.Since(began)), append(cpu, cpuTime(b)-used)
				peaks = append(peaks, peak())
			}
			slices.Sort(cpu)
			slices.Sort(wall)
			took, most := cpu[len(cpu)/2], slices.Max(peaks)
			b.ReportMetric(float64(took.Microseconds())/1000, "cpu-ms/review")
			b.ReportMetric(float64(wall[len(wall)/2].Microseconds())/1000, "wall-ms/review")
			b.ReportMetric(most, "peak-MiB")
			b.Logf("review of %s, %s: %s of CPU, target %s; heap grows by at most %.1f MiB, target %d; met: %v",
				review.name, apiserver.Large, took.Round(time.Millisecond), mostReviewTime, most, mostReviewMiB, took <= mostReviewTime && most <= mostReviewMiB)
		})
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// watchHeap samples the heap, garbage included, until the returned function is
// called, which says by how many MiB it grew.
func watchHeap() (peak func() float64) {
	runtime.GC()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	atRest := heap()
	done, most := make(chan struct{}), make(chan uint64)
	go func() {
		highest := heap()
		for {
			select {
			case <-done:
				most <- max(highest, heap())
				return
			case <-time.After(500 * time.Microsecond):
				highest = max(highest, heap())
			}
		}
	}()
	return func() float64 {
		close(done)
		return float64(<-most-atRest) / (1 << 20)
	}
}
