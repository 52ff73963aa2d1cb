// Command fencing shows on a real Ceph what a fence does: to a client of an
// image, to a client of a file system, to what comes back after it, and to
// Ceph's own daemons where one is at a blocked address. Each step is held
// against what Fairlead takes for granted, and fails if it isn't so.
//
// The lines about daemons are observations, checked only for OSDs.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/fairlead-io/fairlead/e2e/ceph"
)

// longest is what all of it may take; a file system that doesn't answer can hold
// up a system call without an end.
const longest = 25 * time.Minute

func main() {
	ipv6 := flag.Bool("6", false, "all addresses are IPv6")
	slow := flag.Bool("slow", false, "also wait for the session of a killed CephFS client to go (five minutes)")
	binary := flag.String("fairlead", "bin/fairlead", "the program whose ceph-clients is tried")
	capture := flag.String("capture", "", "write what Ceph's commands print to files in this directory")
	flag.Parse()
	started := time.Now()
	os.Exit(ceph.Inside(func(ctx context.Context, directory string) error {
		time.AfterFunc(longest, func() {
			fmt.Fprintf(os.Stderr, "fencing: not done within %v\n", longest)
			os.Exit(1)
		})
		t := &timeline{began: started}
		s := &show{timeline: t, capture: *capture, binary: *binary}
		err := s.run(ctx, directory, *ipv6, *slow)
		if err != nil {
			t.report("FAILED: %v", err)
			return err
		}
		t.report("done")
		return nil
	}))
}

// show is a run of all steps.
type show struct {
	*timeline
	*ceph.Cluster
	capture string
	binary  string
}

func (s *show) run(ctx context.Context, directory string, ipv6, slow bool) error {
	s.title("a Ceph of one machine")
	var err error
	if s.Cluster, err = ceph.Start(ctx, directory, ipv6, func(line string) { s.report("%s", line) }); err != nil {
		return err
	}
	steps := []struct {
		title string
		do    func(context.Context) error
	}{
		{"an image's client, blocked and unblocked", s.address},
		{"the same by a range, as Ceph's CSI driver does it", s.byRange},
		{"how long a deleted client is listed", s.gone},
		{"a node that is cut off", s.cutOff},
		{"a disconnected node, unblocked too early", s.tooEarly},
		{"a client of a file system", s.cephfs},
		{"what a user has to be allowed: to ask for clients, to block", s.caps},
		{"fairlead ceph-clients asked by mutual TLS, with a user that may only read", s.cephClients},
		{"Ceph's own daemons at a blocked address", s.daemons},
	}
	if slow {
		steps = append(steps, struct {
			title string
			do    func(context.Context) error
		}{"how long a killed client of a file system is listed", s.goneCephFS})
	}
	for _, step := range steps {
		s.title(step.title)
		if err := step.do(ctx); err != nil {
			return err
		}
	}
	return nil
}
