package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// restartTime is how long the restart of all CSI plugin pods takes at least. Faster,
// more workloads would be restarted in a minute than the controller's brake lets pass.
const restartTime = 90 * time.Second

// restartClients deletes all CSI plugin pods, a few at a time, and continues when those nodes have another Ready one. It does not wait for the workloads:
// an upgrade of the plugin wouldn't either.
func (s *scenario) restartClients(ctx context.Context) (err error) {
	if s.atRest, err = s.cost(); err != nil {
		return err
	}
	// Times in the API have no fractions: running pods must be older than the next ones.
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(2 * time.Second):
	}
	_, clients := s.follow.lives()
	pods := map[string]string{}
	for _, c := range clients {
		if c.ready {
			pods[c.node] = c.pod
		}
	}
	if len(pods) != s.size.nodes {
		return fmt.Errorf("a CSI plugin pod is Ready on %d nodes, want %d", len(pods), s.size.nodes)
	}
	batch := max(1, s.size.nodes*maxUnavailable/100)
	nodes := s.State.Nodes
	groupTime := restartTime * time.Duration(batch) / time.Duration(s.size.nodes)
	for from := 0; from < len(nodes); from += batch {
		group, began := nodes[from:min(from+batch, len(nodes))], time.Now()
		var problems []error
		for _, node := range group {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: longhorn.DefaultNames().Namespace, Name: pods[node]}}
			problems = append(problems, s.Client.Delete(ctx, pod, client.GracePeriodSeconds(1)))
		}
		if err := errors.Join(problems...); err != nil {
			return fmt.Errorf("deleting CSI plugin pods: %w", err)
		}
		err := s.report.until(ctx, func() (string, bool, error) {
			ready := s.readyAgain(group, pods)
			return fmt.Sprintf("%d of %d nodes", from+ready, len(nodes)), ready == len(group) && time.Since(began) > groupTime, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readyAgain counts the nodes with another Ready CSI plugin pod than the one they had.
func (s *scenario) readyAgain(nodes []string, had map[string]string) int {
	_, clients := s.follow.lives()
	ready := map[string]bool{}
	for _, c := range clients {
		if c.ready && c.pod != had[c.node] {
			ready[c.node] = true
		}
	}
	n := 0
	for _, node := range nodes {
		if ready[node] {
			n++
		}
	}
	return n
}

// quiet is how long nothing may change before the run is over.
const quiet = 15 * time.Second

// waitQuiet waits until no mount is dead, all workloads are Ready and restarts have ended. Else the verdict names the rest.
func (s *scenario) waitQuiet(ctx context.Context) (verdict, error) {
	var last verdict
	var since time.Time
	ended := -1
	err := s.report.until(ctx, func() (string, bool, error) {
		workloads, clients := s.follow.lives()
		last = judge(workloads, clients)
		now, ready := 0, 0
		for _, w := range workloads {
			if !w.ended.IsZero() {
				now++
			}
			if w.ready {
				ready++
			}
		}
		if now != ended || len(last.stale) > 0 || ready != s.size.pods {
			ended, since = now, time.Now()
		}
		return fmt.Sprintf("%d pods are Ready; %s", ready, last), time.Since(since) > quiet, nil
	})
	if err != nil && ctx.Err() == nil {
		s.report.say("given up: %v", err)
		if len(last.stale) == 0 {
			return last, err
		}
		return last, nil // the verdict has the details
	}
	return last, err
}
