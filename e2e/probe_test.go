package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// probe measures how busy the machine is: it writes an object again and again, and waits until a bare watch shows each write.
type probe struct {
	cluster *cluster
	object  *corev1.ConfigMap
	watch   watch.Interface
	stop    chan struct{}
	ended   chan struct{}
	took    []time.Duration
	err     error
}

const (
	probePause = 50 * time.Millisecond
	// probePatience limits the wait for one write; a longer wait counts as this.
	probePatience = 30 * time.Second
	// quiet is the slowest watch of an idle machine, in practice a few milliseconds. A late result on a busier machine is
	// measured again.
	quiet = 50 * time.Millisecond
	// soon is too short for what polls: what is later was not woken by an event. Each test prints what it took, on an
	// idle machine about a second.
	soon = 5 * time.Second
)

// pulse is the time that a bare watch took.
type pulse struct {
	median, slowest time.Duration
	samples         int
}

func (p pulse) String() string {
	return fmt.Sprintf("a bare watch takes %s, at most %s (of %d)", p.median.Round(time.Millisecond/10), p.slowest.Round(time.Millisecond/10), p.samples)
}

func (c *cluster) startProbe() *probe {
	c.t.Helper()
	p := &probe{cluster: c, stop: make(chan struct{}), ended: make(chan struct{})}
	p.object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "probe-"}}
	c.must(c.create(p.object))
	w, err := c.Client.Watch(c.t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": p.object.Name})
	c.must(err)
	p.watch = w
	go func() {
		defer close(p.ended)
		defer w.Stop()
		for n := 0; ; n++ {
			began := time.Now()
			if p.err = p.once(n); p.err != nil {
				p.took = append(p.took, probePatience)
				return
			}
			p.took = append(p.took, time.Since(began))
			select {
			case <-p.stop:
				return
			case <-time.After(probePause): // a sample at a time
			}
		}
	}()
	return p
}

func (p *probe) once(n int) error {
	p.object.Data = map[string]string{"n": fmt.Sprint(n)}
	if err := p.cluster.Client.Update(p.cluster.t.Context(), p.object); err != nil {
		return err
	}
	patience := time.After(probePatience)
	for {
		select {
		case event, ok := <-p.watch.ResultChan():
			if !ok {
				return errors.New("the watch has ended")
			}
			if seen, ok := event.Object.(*corev1.ConfigMap); ok && seen.ResourceVersion == p.object.ResourceVersion {
				return nil
			}
		case <-patience:
			return errors.New("the watch did not show a write")
		}
	}
}

// end ends the measurement.
func (p *probe) end() pulse {
	close(p.stop)
	<-p.ended
	if p.err != nil {
		p.cluster.t.Logf("the probe: %v", p.err)
	}
	slices.Sort(p.took)
	return pulse{median: p.took[len(p.took)/2], slowest: p.took[len(p.took)-1], samples: len(p.took)}
}

// whileQuiet measures something. A late result counts only on a quiet machine; else it measures again, at most three
// times, and then says that nothing was judged.
func (c *cluster) whileQuiet(measure func(try int) (pulse, error)) {
	c.t.Helper()
	for try := range 3 {
		meanwhile, err := measure(try)
		switch {
		case err == nil:
			return
		case meanwhile.slowest <= quiet:
			c.t.Errorf("%v; %s", err, meanwhile)
			return
		}
		c.t.Logf("void: %v; %s", err, meanwhile)
	}
	c.t.Log("not judged: the machine was too busy to measure")
}
