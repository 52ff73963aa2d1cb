package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/ceph"
	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

// daemons blocks the address of each kind of daemon in turn, while an image and
// a file are written to from another. Whether a node may be fenced on which
// daemons are hangs on this.
func (s *show) daemons(ctx context.Context) error {
	_, writer, err := s.writer(ctx, s.Node2, "daemons")
	if err != nil {
		return err
	}
	where, mount, err := s.Node2.Mount(ctx, volume10)
	if err != nil {
		return err
	}
	defer ceph.Unmount(mount)
	file := filepath.Join(where, "file")
	s.report("%s writes to an image and a file system, with two copies on two OSDs", s.Node2.Name)
	if err := s.osd(ctx, writer); err != nil {
		return err
	}
	if err := s.mon(ctx, writer, file); err != nil {
		return err
	}
	if err := s.mgr(ctx); err != nil {
		return err
	}
	return s.mds(ctx, writer, file)
}

func (s *show) osd(ctx context.Context, writer *ceph.Process) error {
	const osd = "osd.0"
	if err := s.BlockAddress(ctx, s.Host(osd).Address); err != nil {
		return err
	}
	defer s.UnblockAddress(context.WithoutCancel(ctx), s.Host(osd).Address)
	time.Sleep(10 * time.Second)
	if err := s.getsOn(ctx, writer); err != nil {
		return err
	}
	if up, err := s.OSDsUp(ctx); err != nil || up != 2 {
		return fmt.Errorf("%d OSDs are up: %w", up, err)
	}
	s.report("OSD: 10 s at a blocked address: it is up, and two copies are written")
	s.Daemon(osd).Terminate()
	<-s.Daemon(osd).Ended()
	if err := s.WaitOSDs(ctx, 1); err != nil {
		return err
	}
	if err := s.StartDaemon(osd); err != nil {
		return err
	}
	if err := s.WaitOSDs(ctx, 2); err != nil {
		return err
	}
	if err := s.clean(ctx); err != nil {
		return err
	}
	s.report("OSD: restarted there: it is up again, and all placement groups are clean")
	return s.getsOn(ctx, writer)
}

// clean waits until all data has all its copies.
func (s *show) clean(ctx context.Context) error {
	return ceph.Wait(ctx, 3*time.Minute, "all placement groups clean", func() (bool, error) {
		out, err := s.Ceph(ctx, "pg", "stat")
		return err == nil && !bytes.Contains(out, []byte("degraded")) && !bytes.Contains(out, []byte("peering")) &&
			!bytes.Contains(out, []byte("down")) && !bytes.Contains(out, []byte("undersized")), err
	})
}

func (s *show) mon(ctx context.Context, writer *ceph.Process, file string) error {
	address := s.Host("mon.a").Address
	if err := s.BlockAddress(ctx, address); err != nil {
		return err
	}
	defer s.UnblockAddress(context.WithoutCancel(ctx), address)
	time.Sleep(5 * time.Second)
	if err := errors.Join(s.getsOn(ctx, writer), s.Node2.WriteFile(ctx, file, answer)); err != nil {
		return err
	}
	s.report("MON: at a blocked address: it answers, and writes go on")
	return nil
}

// counted is how often a text is in a log.
func counted(log, text string) int {
	content, _ := os.ReadFile(log)
	return bytes.Count(content, []byte(text))
}

func (s *show) mgr(ctx context.Context) error {
	const mgr, again = "mgr.x", "recovering from double blocklisting"
	before := counted(s.Log(mgr), again)
	metadata, err := s.Ceph(ctx, cephcli.MgrMetadataArgs()...)
	if err != nil {
		return err
	}
	if hosts, err := cephcli.ParseMgrMetadata(metadata); err != nil || !slices.Contains(hosts, s.Host(mgr).Address) {
		return fmt.Errorf("%s is not listed as the host of a manager: %v, %w", s.Host(mgr).Address, hosts, err)
	}
	if err := s.BlockAddress(ctx, s.Host(mgr).Address); err != nil {
		return err
	}
	s.report("MGR: its address is blocked")
	time.Sleep(40 * time.Second)
	state := "it runs"
	if !s.Daemon(mgr).Running() {
		state = "IT HAS ENDED: " + s.Daemon(mgr).Tail()
	}
	during := counted(s.Log(mgr), again)
	answers := "answers"
	if _, err := s.Ceph(ctx, "pg", "stat"); err != nil {
		answers = "DOESN'T ANSWER"
	}
	s.report("MGR: 40 s later %s and %s; its RBD module has tried to come back %d times", state, answers, during-before)
	if err := s.UnblockAddress(ctx, s.Host(mgr).Address); err != nil {
		return err
	}
	time.Sleep(3 * time.Second)
	settled := counted(s.Log(mgr), again)
	time.Sleep(3 * time.Second)
	s.report("MGR: unblocked; it has tried %d times in the last 3 s", counted(s.Log(mgr), again)-settled)
	return nil
}

// starts is how many MDSs that there were at a host the monitor has blocked: it
// does so as each is replaced.
func (s *show) starts(ctx context.Context, h *ceph.Host) int {
	nonces := map[string]bool{}
	for _, blocked := range s.own(ctx) {
		if blocked.Range.Addr() == h.Address {
			_, nonce, _ := strings.Cut(blocked.Client, "/")
			nonces[nonce] = true
		}
	}
	return len(nonces)
}

func (s *show) mds(ctx context.Context, writer *ceph.Process, file string) error {
	active, err := s.ActiveMDS(ctx)
	if err != nil {
		return err
	}
	blocked := s.Host("mds." + active)
	if mdss, err := s.MDSs(ctx); err != nil || !slices.Contains(mdss.Addresses, blocked.Address) {
		return fmt.Errorf("%s is not listed as the host of an MDS: %v, %w", blocked.Address, mdss.Addresses, err)
	}
	before := s.starts(ctx, blocked)
	if err := s.BlockAddress(ctx, blocked.Address); err != nil {
		return err
	}
	s.report("MDS: the address of mds.%s is blocked, the other one's is not", active)
	began := time.Now()
	wrote := s.Node2.WriteFile(ctx, file, 30*time.Second)
	if wrote == nil {
		s.report("MDS: a file is written after %s", short(time.Since(began)))
	} else {
		s.report("MDS: a file is NOT written: %v", wrote)
	}
	time.Sleep(time.Until(began.Add(30 * time.Second)))
	now, err := s.ActiveMDS(ctx)
	if err != nil {
		return err
	}
	if now == "" {
		now = "none of the two"
	}
	s.report("MDS: within 30 s mds.%s has restarted %d times, the monitor has blocked each start for a day; active is %s",
		active, s.starts(ctx, blocked)-before, now)
	if err := s.UnblockAddress(ctx, blocked.Address); err != nil {
		return err
	}
	if err := s.WaitFileSystem(ctx); err != nil {
		return err
	}
	s.report("MDS: unblocked; an MDS is active")
	if err := s.Node2.WriteFile(ctx, file, time.Minute); err != nil {
		s.report("MDS: the client does not write: %v", err)
	} else {
		s.report("MDS: the client writes")
	}
	return s.getsOn(ctx, writer)
}
