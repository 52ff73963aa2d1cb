package ceph

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

// Image is an RBD image.
type Image struct{ cephcli.Volume }

// NewImage names an image of the pool that there is.
func NewImage(name string) Image { return Image{cephcli.Volume{Pool: rbdPool, Image: name}} }

// String is the image's path, as rbd writes it.
func (i Image) String() string { return i.Pool + "/" + i.Volume.Image }

// CreateImage makes one, with Ceph's usual features: a writer holds a lock on it.
func (c *Cluster) CreateImage(ctx context.Context, image Image) error {
	_, err := c.RBD(ctx, "create", image.String(), "--size", "1G")
	return err
}

// OpenFrom are the addresses that an image is open from.
func (c *Cluster) OpenFrom(ctx context.Context, image Image) ([]netip.Addr, error) {
	out, err := c.RBDStatus(ctx, image)
	if err != nil {
		return nil, err
	}
	return cephcli.ParseStatus(out)
}

// RBDStatus is what rbd says of an image, in its own words.
func (c *Cluster) RBDStatus(ctx context.Context, image Image) ([]byte, error) {
	return c.RBD(ctx, image.StatusArgs()...)
}

func bench(image Image, total string) []string {
	return []string{"bench", "--io-type", "write", "--io-size", "4096", "--io-threads", "1", "--io-total", total,
		"--rbd_cache=false", image.String()}
}

// StartWriter writes to an image without an end. It writes a line each second in
// which a write came back.
func (h *Host) StartWriter(image Image) (*Process, error) {
	return h.Start(fmt.Sprintf("writer-%s-%s-%d", h.Name, image.Volume.Image, time.Now().UnixMilli()), "rbd", bench(image, "1T")...)
}

// Write opens an image, writes to it and closes it.
func (h *Host) Write(ctx context.Context, image Image) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := h.Run(ctx, "rbd", bench(image, "1M")...)
	return err
}

// FileSystem is the name of the file system that there is.
func FileSystem() string { return fileSystem }

// Mount mounts a path of the file system on a host, and returns where and the
// process that keeps it.
func (h *Host) Mount(ctx context.Context, path string) (string, *Process, error) {
	where, err := os.MkdirTemp(filepath.Join(h.dir, "mnt"), h.Name+"-")
	if err != nil {
		return "", nil, err
	}
	before, err := os.Stat(where)
	if err != nil {
		return "", nil, err
	}
	process, err := h.Start(filepath.Base(where), "ceph-fuse", "-f", "--client_mds_namespace="+fileSystem, "-r", path, where)
	if err != nil {
		return "", nil, err
	}
	return where, process, Wait(ctx, 30*time.Second, "mount of "+path+" on "+h.Name, func() (bool, error) {
		after, err := os.Stat(where)
		return err == nil && !os.SameFile(before, after), err
	})
}

// Unmount ends a mount cleanly. The files of a killed mount stay locked for
// others for a minute.
func Unmount(mount *Process) {
	mount.Terminate()
	select {
	case <-mount.Ended():
	case <-time.After(10 * time.Second):
		mount.Kill()
	}
}

// WriteFile writes a file and waits until Ceph has it. A file system that doesn't
// answer keeps its process for as long as it likes, but not the caller.
func (h *Host) WriteFile(ctx context.Context, path string, most time.Duration) error {
	process, err := h.Start("dd-"+h.Name, "dd", "if=/dev/zero", "of="+path, "bs=64k", "count=16", "conv=fsync")
	if err != nil {
		return err
	}
	select {
	case <-process.Ended():
		if code := process.ExitCode(); code != 0 {
			text := process.Tail()
			return fmt.Errorf("dd ended with %d: %s", code, text[strings.LastIndex(text, ": ")+2:])
		}
		return nil
	case <-time.After(most):
		process.Kill()
		return fmt.Errorf("no answer within %v", most)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ClientsOf are the addresses that a path is mounted from.
func (c *Cluster) ClientsOf(ctx context.Context, path string) ([]netip.Addr, error) {
	mdss, err := c.MDSs(ctx)
	if err != nil {
		return nil, err
	}
	if len(mdss.Ranks[fileSystem]) == 0 {
		return nil, errors.New("the file system is not served")
	}
	var all []netip.Addr
	for _, rank := range mdss.Ranks[fileSystem] {
		out, err := c.Sessions(ctx, rank)
		if err != nil {
			return nil, err
		}
		mounted, err := cephcli.ParseClientLs(out)
		if err != nil {
			return nil, err
		}
		all = append(all, mounted[path]...)
	}
	return all, nil
}

// Sessions is what one MDS says of its clients, in its own words.
func (c *Cluster) Sessions(ctx context.Context, rank int) ([]byte, error) {
	return c.Ceph(ctx, cephcli.ClientLsArgs(fileSystem, rank)...)
}
