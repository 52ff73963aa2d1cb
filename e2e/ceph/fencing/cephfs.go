package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fairlead-io/fairlead/e2e/ceph"
	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

// Volumes as Ceph's CSI driver lays them out. One's name is the beginning of the
// other's.
const (
	volume1  = "/volumes/csi/csi-vol-1/4f2e"
	volume10 = "/volumes/csi/csi-vol-1/4f2e-0"
)

// answer is how long a file system may take to answer.
const answer = 20 * time.Second

func (s *show) clientsOf(ctx context.Context, path string, addresses ...netip.Addr) error {
	return ceph.Wait(ctx, 7*time.Minute, fmt.Sprintf("clients of %s are %v", path, addresses), func() (bool, error) {
		found, err := s.ClientsOf(ctx, path)
		return slices.Equal(found, addresses), err
	})
}

func (s *show) cephfs(ctx context.Context) error {
	whole, setup, err := s.Admin.Mount(ctx, "/")
	if err != nil {
		return err
	}
	for _, volume := range []string{volume1, volume10} {
		if err := os.MkdirAll(filepath.Join(whole, volume), 0o755); err != nil {
			return err
		}
	}
	ceph.Unmount(setup)
	where1, mount1, err := s.Node1.Mount(ctx, volume1)
	if err != nil {
		return err
	}
	where2, mount2, err := s.Node2.Mount(ctx, volume10)
	if err != nil {
		return err
	}
	defer ceph.Unmount(mount2)
	if err := errors.Join(s.Node1.WriteFile(ctx, filepath.Join(where1, "file"), answer),
		s.Node2.WriteFile(ctx, filepath.Join(where2, "file"), answer)); err != nil {
		return err
	}
	s.report("%s has mounted %s and %s %s; both have written", s.Node1.Name, volume1, s.Node2.Name, volume10)
	stat, err := s.Ceph(ctx, cephcli.MDSStatArgs()...)
	if err != nil {
		return err
	}
	if err := s.keep("mds-stat.json", stat); err != nil {
		return err
	}
	if err := errors.Join(s.clientsOf(ctx, volume1, s.Node1.Address), s.clientsOf(ctx, volume10, s.Node2.Address)); err != nil {
		return err
	}
	s.report("the MDS names the address of each, by the path that it has mounted")
	if s.capture != "" {
		if err := s.captureMDSs(ctx); err != nil {
			return err
		}
	}
	if err := s.BlockAddress(ctx, s.Node1.Address); err != nil {
		return err
	}
	s.report("ceph osd blocklist add %s", s.Node1.Address)
	if err := s.clientsOf(ctx, volume1); err != nil {
		return err
	}
	s.report("the MDS has ended its session by itself")
	err = s.Node1.WriteFile(ctx, filepath.Join(where1, "file"), answer)
	if err == nil {
		return errors.New("a blocked client has written")
	}
	s.report("its writes fail: %v", err)
	where, mount, err := s.Node2.Mount(ctx, volume1)
	if err != nil {
		return err
	}
	// The blocked client had the file open; the file is not locked by it.
	if err := s.Node2.WriteFile(ctx, filepath.Join(where, "file"), answer); err != nil {
		return err
	}
	s.report("%s has mounted the volume, and written the same file", s.Node2.Name)
	ceph.Unmount(mount)
	if err := s.Node2.WriteFile(ctx, filepath.Join(where2, "file"), answer); err != nil {
		return err
	}
	if err := s.UnblockAddress(ctx, s.Node1.Address); err != nil {
		return err
	}
	if err := s.Node1.WriteFile(ctx, filepath.Join(where1, "file"), answer); err == nil {
		s.report("UNBLOCKED, THE OLD MOUNT WRITES AGAIN")
	} else {
		s.report("unblocked: the old mount does not recover: %v", err)
	}
	ceph.Unmount(mount1)
	where1, mount1, err = s.Node1.Mount(ctx, volume1)
	if err != nil {
		return err
	}
	defer func() { ceph.Unmount(mount1) }()
	if err := s.Node1.WriteFile(ctx, filepath.Join(where1, "file"), answer); err != nil {
		return err
	}
	s.report("a new mount on %s has written", s.Node1.Name)
	return nil
}

// captureMDSs records the output of two active MDSs, and returns to one.
func (s *show) captureMDSs(ctx context.Context) error {
	actives := func(number int) error {
		if _, err := s.Ceph(ctx, "fs", "set", ceph.FileSystem(), "max_mds", fmt.Sprint(number)); err != nil {
			return err
		}
		return ceph.Wait(ctx, time.Minute, fmt.Sprintf("%d active MDSs", number), func() (bool, error) {
			mdss, err := s.MDSs(ctx)
			if err != nil {
				return false, err
			}
			return len(mdss.Ranks[ceph.FileSystem()]) == number, nil
		})
	}
	if err := actives(2); err != nil {
		return err
	}
	time.Sleep(time.Second)
	stat, err := s.Ceph(ctx, cephcli.MDSStatArgs()...)
	if err != nil {
		return err
	}
	sessions, err := s.Sessions(ctx, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(s.keep("client-ls.json", sessions), s.keep("mds-stat-two.json", stat)); err != nil {
		return err
	}
	return actives(1)
}

func (s *show) goneCephFS(ctx context.Context) error {
	_, mount, err := s.Node1.Mount(ctx, volume1)
	if err != nil {
		return err
	}
	if err := s.clientsOf(ctx, volume1, s.Node1.Address); err != nil {
		return err
	}
	s.report("%s has mounted %s", s.Node1.Name, volume1)
	mount.Kill()
	if err := s.clientsOf(ctx, volume1); err != nil {
		return err
	}
	s.report("it is listed no more; it was killed at the line before")
	return nil
}
