package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/fairlead-io/fairlead/e2e/ceph"
	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

// caps tries the least rights for asking and for blocking. It blocks an address without a client.
func (s *show) caps(ctx context.Context) error {
	image := ceph.NewImage("caps")
	if err := s.CreateImage(ctx, image); err != nil {
		return err
	}
	nobody := single(netip.MustParseAddr("192.0.2.1"))
	for _, try := range []struct {
		user string
		caps []string
		may  map[string]bool
	}{
		{"reader", ceph.ClientsCaps, map[string]bool{"status": true, "data": false, "snapshot": false, "sessions": false, "list": true, "range": false, "address": false}},
		{"node", []string{"mon", "profile rbd", "osd", "profile rbd pool=" + image.Pool},
			map[string]bool{"status": true, "sessions": false, "list": true, "range": true, "address": false}},
		{"mds-reader", []string{"mon", "allow r", "mds", "allow r"}, map[string]bool{"sessions": false, "list": true, "range": false}},
		{"mds-all", append([]string{"mon", "allow r"}, ceph.CephFSCaps...), map[string]bool{"sessions": true, "list": true, "range": false}},
		{"fencer", []string{"mon", `allow r, allow command "osd blocklist"`}, map[string]bool{"range": true, "address": true, "sessions": false}},
	} {
		keyring := filepath.Join(s.Directory, "keyring-"+try.user)
		if _, err := s.Ceph(ctx, append([]string{"auth", "get-or-create", "client." + try.user, "-o", keyring}, try.caps...)...); err != nil {
			return err
		}
		run := func(program string, args ...string) ([]byte, error) {
			// Who may not read the map of MDSs waits for it without an end.
			ctx, cancel := context.WithTimeout(ctx, answer)
			defer cancel()
			return s.Admin.Run(ctx, program, append([]string{"--id", try.user, "--keyring", keyring}, args...)...)
		}
		for what, ask := range map[string]func() error{
			"status":   func() error { _, err := run("rbd", image.StatusArgs()...); return err },
			"data":     func() error { _, err := run("rbd", "export", image.String(), "-"); return err },
			"snapshot": func() error { _, err := run("rbd", "snap", "create", image.String()+"@"+try.user); return err },
			"sessions": func() error { _, err := run("ceph", cephcli.ClientLsArgs(ceph.FileSystem(), 0)...); return err },
			"list":     func() error { _, err := run("ceph", "osd", "blocklist", "ls"); return err },
			"range":    func() error { _, err := run("ceph", "osd", "blocklist", "range", "add", nobody.String()); return err },
			"address":  func() error { _, err := run("ceph", "osd", "blocklist", "add", nobody.Addr().String()); return err },
		} {
			may, asked := try.may[what]
			if !asked {
				continue
			}
			if err := ask(); may != (err == nil) {
				return fmt.Errorf("%q: may it %s? %t was expected: %w", try.caps, what, may, err)
			}
		}
		s.report("%q: %v", try.caps, try.may)
	}
	return errors.Join(s.Unblock(ctx, nobody), s.UnblockAddress(ctx, nobody.Addr()))
}
