package testkit

import (
	"runtime"
	"runtime/metrics"
	"time"
)

// WatchHeap samples the heap, garbage included, until the returned function is called. That function returns by how
// many MiB the heap grew.
func WatchHeap() (peak func() float64) {
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
