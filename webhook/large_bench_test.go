package webhook

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/bench/apiserver"
	"github.com/fairlead-io/fairlead/internal/cluster"
	"github.com/fairlead-io/fairlead/internal/testkit"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// Limits of one review in a large cluster: memory beyond the process at rest, and
// CPU time of the process.
const (
	mostReviewMiB  = 128
	mostReviewTime = time.Second
)

// serveEnv has the test binary be the API server, so that its own work is not measured.
const serveEnv = "FAIRLEAD_BENCH_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveEnv) == "" {
		os.Exit(m.Run())
	}
	if err := serveLarge(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serveLarge serves until whoever started the process ends.
func serveLarge() error {
	scheme, err := cluster.NewScheme()
	if err != nil {
		return err
	}
	server, err := apiserver.New(scheme, apiserver.Large)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", listener.Addr())
	go func() { _ = http.Serve(listener, server) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func serveLargeCluster(b *testing.B) (url string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"=1")
	stdin, err := cmd.StdinPipe()
	must.Do(b, err)
	stdout, err := cmd.StdoutPipe()
	must.Do(b, err)
	must.Do(b, cmd.Start())
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

// cost of one review: CPU time of the process, and how far its heap grew.
type cost struct {
	cpu, wall time.Duration
	mib       float64
}

func costOf(b *testing.B, handler rig, review largeReview) cost {
	b.Helper()
	peak := testkit.WatchHeap()
	began, used := time.Now(), cpuTime(b)
	review.ask(b, handler)
	wall, cpu := time.Since(began), cpuTime(b)-used
	return cost{cpu, wall, peak()}
}

// median of times, and the most memory.
func median(costs []cost) cost {
	middle := len(costs) / 2
	most := slices.MaxFunc(costs, func(x, y cost) int { return cmp.Compare(x.mib, y.mib) }).mib
	slices.SortFunc(costs, func(x, y cost) int { return cmp.Compare(x.wall, y.wall) })
	wall := costs[middle].wall
	slices.SortFunc(costs, func(x, y cost) int { return cmp.Compare(x.cpu, y.cpu) })
	return cost{costs[middle].cpu, wall, most}
}

// BenchmarkLargeReviews measures the reviews that gather much beside an API server
// in another process. That API server encodes in advance: a real one takes longer to answer.
func BenchmarkLargeReviews(b *testing.B) {
	url := serveLargeCluster(b)
	paged := newRig(b, liveOver(b, largeCluster(b, apiserver.Size{Nodes: 1}), url), volumeNetworksOn)
	// As in manifests/base/webhook.yaml.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(400 << 20))
	for _, review := range largeReviews() {
		b.Run(review.name, func(b *testing.B) {
			review.ask(b, paged) // the server encodes
			var costs []cost
			for b.Loop() {
				costs = append(costs, costOf(b, paged, review))
			}
			is := median(costs)
			b.ReportMetric(float64(is.cpu.Microseconds())/1000, "cpu-ms/review")
			b.ReportMetric(float64(is.wall.Microseconds())/1000, "wall-ms/review")
			b.ReportMetric(is.mib, "peak-MiB")
			b.Logf("review of %s, %s: %s, target %s; heap grows by at most %.1f MiB, target %d; met: %v",
				review.name, apiserver.Large, is.wall.Round(time.Millisecond), mostReviewTime, is.mib, mostReviewMiB,
				is.wall <= mostReviewTime && is.mib <= mostReviewMiB)
		})
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	must.Do(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
