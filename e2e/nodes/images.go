//go:build linux

package nodes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/e2e/nodes/image"
)

// WorkloadImage is a shell with busybox' programs.
const WorkloadImage = "fairlead.test/workload:1"

const dnsImage = "fairlead.test/coredns:1"

// allImages are on the nodes from the beginning, beside Fairlead's image.
func (c *Cluster) allImages(ctx context.Context) ([]image.Image, error) {
	folders := map[string]string{}
	for _, set := range []string{"coredns", "longhorn", "longhornpods", "csisidecars", "csiaddons"} {
		folder, err := c.Ensure(ctx, set)
		if err != nil {
			return nil, err
		}
		folders[set] = folder
	}
	images := []image.Image{
		{Name: pauseImage, Entrypoint: []string{"/bin/sleep", "infinity"}},
		{Name: WorkloadImage, Cmd: []string{"/bin/sh"}},
		{Name: dnsImage, Files: map[string]string{"/coredns": filepath.Join(folders["coredns"], "coredns")}, Entrypoint: []string{"/coredns"}},
	}
	images = append(images, longhornImages(folders["longhornpods"], folders["longhorn"], c.programs.NFSMount)...)
	images = append(images, sidecarImages(folders["csisidecars"], filepath.Join(folders["longhorn"], "csi-attacher"))...)
	return append(images, append(csiAddonsImages(folders["csiaddons"]), c.nfsImages()...)...), nil
}

// prepareImages fills the nodes' image stores: importing on each node would take most of the time of a start. The store
// is kept for the next cluster with the same images.
func (c *Cluster) prepareImages(ctx context.Context) error {
	images, err := c.allImages(ctx)
	if err != nil {
		return err
	}
	key := sha256.New()
	for _, i := range images {
		if err := i.Fingerprint(key); err != nil {
			return err
		}
	}
	if err := image.FingerprintFile(key, c.Image); err != nil {
		return err
	}
	coredns, err := c.Ensure(ctx, "coredns")
	if err != nil {
		return err
	}
	stores := filepath.Join(filepath.Dir(filepath.Dir(coredns)), "nodeimages")
	store := filepath.Join(stores, fmt.Sprintf("%x", key.Sum(nil))[:16])
	if _, err := os.Stat(store); err != nil {
		fmt.Fprintln(c.Out, "making the images of the nodes (half a minute, until one changes)")
		if err := removeOldStores(stores); err != nil {
			return err
		}
		building := filepath.Join(c.Dir, "images")
		if err := c.fillStore(ctx, building, images); err != nil {
			return err
		}
		if err := move(ctx, building, store); err != nil {
			return err
		}
	}
	return inParallel(c.Nodes, func(n *Node) error { return copyStore(store, filepath.Join(n.Dir, "disk/var/lib/containerd")) })
}

// fillStore imports the images with a containerd of its own.
func (c *Cluster) fillStore(ctx context.Context, folder string, images []image.Image) error {
	state := filepath.Join(c.Dir, "images-state")
	configuration := filepath.Join(c.Dir, "images.toml")
	socket := filepath.Join(state, "socket")
	if err := errors.Join(os.MkdirAll(state, 0o755), os.MkdirAll(folder, 0o755),
		writeFile(configuration, "version = 2\noom_score = 0\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n")); err != nil {
		return err
	}
	containerd := exec.CommandContext(ctx, "containerd", "--config", configuration, "--root", folder, "--state", state, "--address", socket, "--log-level", "warn")
	containerd.Stderr = c.Out
	if err := containerd.Start(); err != nil {
		return fmt.Errorf("starting containerd: %w", err)
	}
	defer containerd.Wait() //nolint:errcheck // its status after a signal says nothing
	defer containerd.Process.Signal(syscall.SIGTERM)
	archive := filepath.Join(c.Dir, "images.tar")
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer os.Remove(archive)
	if err := errors.Join(image.Write(file, images...), file.Close()); err != nil {
		return err
	}
	for _, path := range []string{archive, c.Image} {
		err := eventually.Until(ctx, "containerd", startTimeout, func() error {
			_, err := run(ctx, "ctr", "--address", socket, "--namespace=k8s.io", "images", "import", "--platform=linux/amd64", path)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// keptStores is how many are kept for later clusters.
const keptStores = 4

func removeOldStores(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(folder, 0o755)
	}
	for err == nil && len(entries) >= keptStores {
		oldest := 0
		for i := range entries {
			a, one := entries[i].Info()
			b, two := entries[oldest].Info()
			if one == nil && two == nil && a.ModTime().Before(b.ModTime()) {
				oldest = i
			}
		}
		err = os.RemoveAll(filepath.Join(folder, entries[oldest].Name()))
		entries = append(entries[:oldest], entries[oldest+1:]...)
	}
	return err
}

// move makes a whole store appear at once: another cluster may look for the store meanwhile, or have made it.
func move(ctx context.Context, from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, syscall.EXDEV) {
		copied, made := os.MkdirTemp(filepath.Dir(to), "copied-")
		if made != nil {
			return made
		}
		defer os.RemoveAll(copied)
		if _, err := run(ctx, "cp", "-a", from+"/.", copied); err != nil {
			return err
		}
		err = os.Rename(copied, to)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// copyStore links files that never change, and copies databases.
func copyStore(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		at := filepath.Join(to, relative)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir():
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
			return os.Chmod(at, info.Mode())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		case filepath.Ext(path) != ".db":
			if err := os.Link(path, at); err == nil {
				return nil
			}
		}
		return copyFile(path, at, info.Mode())
	})
}

func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
