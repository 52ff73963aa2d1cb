package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/e2e/ceph"
)

// shutdown is what librbd says to who is blocked: ESHUTDOWN.
const shutdown = "(108) Cannot send after transport endpoint shutdown"

// writer makes an image that a host writes to, and waits until Ceph says so.
func (s *show) writer(ctx context.Context, h *ceph.Host, name string) (ceph.Image, *ceph.Process, error) {
	image := ceph.NewImage(name)
	if err := s.CreateImage(ctx, image); err != nil {
		return image, nil, err
	}
	process, err := h.StartWriter(image)
	if err != nil {
		return image, nil, err
	}
	if err := s.watched(ctx, image, h.Address); err != nil {
		return image, nil, err
	}
	return image, process, s.getsOn(ctx, process)
}

// watched waits until just this address watches an image.
func (s *show) watched(ctx context.Context, image ceph.Image, addresses ...netip.Addr) error {
	return ceph.Wait(ctx, time.Minute, fmt.Sprintf("%s is open from %v", image, addresses), func() (bool, error) {
		found, err := s.OpenFrom(ctx, image)
		return slices.Equal(found, addresses), err
	})
}

// getsOn waits until a writer has written on.
func (s *show) getsOn(ctx context.Context, p *ceph.Process) error {
	from, lines := p.Written(), int64(60)
	return ceph.Wait(ctx, 30*time.Second, "writes of "+p.Name, func() (bool, error) {
		if !p.Running() {
			return false, errors.New(p.Tail())
		}
		return p.Written() > from+lines, nil
	})
}

// fails waits until a writer has ended like a blocked one.
func (s *show) fails(ctx context.Context, p *ceph.Process) error {
	select {
	case <-p.Ended():
	case <-time.After(time.Minute):
		return fmt.Errorf("%s still runs", p.Name)
	case <-ctx.Done():
		return ctx.Err()
	}
	if !strings.Contains(p.Tail(), shutdown) {
		return fmt.Errorf("it ended, but not because it is blocked: %s", p.Tail())
	}
	return nil
}

// refused returns an error if a new client is accepted.
func refused(err error) error {
	var failed *ceph.CommandError
	if err == nil {
		return errors.New("the new client was accepted")
	}
	if !errors.As(err, &failed) || !strings.Contains(failed.Stderr, shutdown) {
		return fmt.Errorf("it failed, but not because it is blocked: %w", err)
	}
	return nil
}

func (s *show) covered(ctx context.Context, address netip.Addr) error {
	blocked, err := s.Blocked(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(blocked, func(b ceph.Blocked) bool { return b.Covers(address) }) {
		return fmt.Errorf("%s is not on the list: %v", address, blocked)
	}
	return nil
}

func (s *show) address(ctx context.Context) error {
	image, first, err := s.writer(ctx, s.Node1, "by-address")
	if err != nil {
		return err
	}
	status, err := s.RBDStatus(ctx, image)
	if err != nil {
		return err
	}
	if err := s.keep("rbd-status.json", status); err != nil {
		return err
	}
	s.report("%s writes to %s; rbd status says %s", s.Node1.Name, image, bytes.TrimSpace(status))
	if err := s.BlockAddress(ctx, s.Node1.Address); err != nil {
		return err
	}
	s.report("ceph osd blocklist add %s", s.Node1.Address)
	if err := s.fails(ctx, first); err != nil {
		return err
	}
	s.report("its writes fail: %s", shutdown)
	if err := s.watched(ctx, image); err != nil {
		return err
	}
	s.report("the watcher is gone")
	if err := s.covered(ctx, s.Node1.Address); err != nil {
		return err
	}
	if err := refused(s.Node1.Write(ctx, image)); err != nil {
		return err
	}
	s.report("a new client on %s is refused", s.Node1.Name)
	if err := s.Node2.Write(ctx, image); err != nil {
		return err
	}
	s.report("%s has written to the image", s.Node2.Name)
	for _, blocked := range s.own(ctx) {
		s.report("Ceph has blocked %s itself, as the lock was taken from it, until %s", blocked.Client, blocked.Until.Format("15:04:05 of 2006-01-02"))
	}
	if err := s.UnblockAddress(ctx, s.Node1.Address); err != nil {
		return err
	}
	s.report("ceph osd blocklist rm %s", s.Node1.Address)
	if err := s.Node1.Write(ctx, image); err != nil {
		return err
	}
	s.report("a new client on %s has written", s.Node1.Name)
	return nil
}

// own are the single clients that Ceph has blocked without being told.
func (s *show) own(ctx context.Context) []ceph.Blocked {
	blocked, _ := s.Blocked(ctx)
	return slices.DeleteFunc(blocked, func(b ceph.Blocked) bool { return b.Client == "" })
}

func single(address netip.Addr) netip.Prefix { return netip.PrefixFrom(address, address.BitLen()) }

func (s *show) byRange(ctx context.Context) error {
	image, first, err := s.writer(ctx, s.Node1, "by-range")
	if err != nil {
		return err
	}
	s.report("%s writes to %s", s.Node1.Name, image)
	clients := single(s.Node1.Address)
	if err := s.Block(ctx, clients, time.Hour); err != nil {
		return err
	}
	s.report("ceph osd blocklist range add %s", clients)
	if err := s.fails(ctx, first); err != nil {
		return err
	}
	if err := s.watched(ctx, image); err != nil {
		return err
	}
	s.report("its writes fail, the watcher is gone")
	if err := s.covered(ctx, s.Node1.Address); err != nil {
		return err
	}
	if err := refused(s.Node1.Write(ctx, image)); err != nil {
		return err
	}
	if err := s.Node2.Write(ctx, image); err != nil {
		return err
	}
	s.report("%s is refused, %s has written", s.Node1.Name, s.Node2.Name)
	if err := s.Unblock(ctx, clients); err != nil {
		return err
	}
	if err := s.Node1.Write(ctx, image); err != nil {
		return err
	}
	s.report("range rm: a new client on %s has written", s.Node1.Name)
	return nil
}

func (s *show) gone(ctx context.Context) error {
	image, process, err := s.writer(ctx, s.Node1, "gone")
	if err != nil {
		return err
	}
	process.Terminate()
	if err := s.watched(ctx, image); err != nil {
		return err
	}
	s.report("Ceph no longer reports a client that ended tidily")
	if process, err = s.Node1.StartWriter(image); err != nil {
		return err
	}
	if err := s.watched(ctx, image, s.Node1.Address); err != nil {
		return err
	}
	s.report("another writes")
	process.Kill()
	if err := s.watched(ctx, image); err != nil {
		return err
	}
	s.report("Ceph no longer reports the writer, which was killed at the line before")
	return nil
}

func (s *show) cutOff(ctx context.Context) error {
	image, process, err := s.writer(ctx, s.Node1, "cut-off")
	if err != nil {
		return err
	}
	if err := s.Node1.Unplug(ctx); err != nil {
		return err
	}
	s.report("%s writes to %s, and its cable is pulled", s.Node1.Name, image)
	time.Sleep(3 * time.Second)
	if err := s.watched(ctx, image, s.Node1.Address); err != nil {
		return err
	}
	s.report("Ceph still reports the client")
	if err := s.BlockAddress(ctx, s.Node1.Address); err != nil {
		return err
	}
	if err := s.watched(ctx, image); err != nil {
		return err
	}
	s.report("blocked: the watcher is gone, whether or not the node can hear of it")
	if err := s.Node1.Plug(ctx); err != nil {
		return err
	}
	if err := s.fails(ctx, process); err != nil {
		return err
	}
	s.report("the cable is back: its writes fail")
	return s.UnblockAddress(ctx, s.Node1.Address)
}

func (s *show) tooEarly(ctx context.Context) error {
	for _, taken := range []bool{false, true} {
		image, process, err := s.writer(ctx, s.Node1, fmt.Sprintf("too-early-%t", taken))
		if err != nil {
			return err
		}
		before, err := s.RBDStatus(ctx, image)
		if err != nil {
			return err
		}
		if err := s.Node1.Unplug(ctx); err != nil {
			return err
		}
		if err := s.BlockAddress(ctx, s.Node1.Address); err != nil {
			return err
		}
		if err := s.watched(ctx, image); err != nil {
			return err
		}
		s.report("%s is cut off and blocked while it writes to %s", s.Node1.Name, image)
		if taken {
			if err := s.Node2.Write(ctx, image); err != nil {
				return err
			}
			s.report("%s writes to the image", s.Node2.Name)
		}
		if err := s.UnblockAddress(ctx, s.Node1.Address); err != nil {
			return err
		}
		if err := s.Node1.Plug(ctx); err != nil {
			return err
		}
		s.report("it is unfenced, and after that its cable is back")
		if taken {
			if err := s.fails(ctx, process); err != nil {
				return err
			}
			s.report("the old client's writes fail: the client that took its lock had blocked it first")
			continue
		}
		if err := s.watched(ctx, image, s.Node1.Address); err != nil {
			return err
		}
		if err := s.getsOn(ctx, process); err != nil {
			return err
		}
		after, err := s.RBDStatus(ctx, image)
		if err != nil {
			return err
		}
		s.report("THE OLD CLIENT WRITES ON, as %s, before as %s: a fence that is taken back while the node is away was none",
			bytes.TrimSpace(after), bytes.TrimSpace(before))
		process.Terminate()
	}
	return nil
}
