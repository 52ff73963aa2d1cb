// Package image makes images of containers from files of this machine, without a registry and
// without a builder: archives as `docker save` writes them, which containerd imports.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Image of a container.
type Image struct {
	// Name by which containers ask for it, with its registry: docker.io/longhornio/longhorn-engine:v1.7.2.
	Name string
	// Files are files and folders of this machine by their path in the image.
	Files map[string]string
	// Texts are executable files by their path in the image.
	Texts map[string]string
	// Links are targets of symbolic links by their path in the image.
	Links map[string]string
	// Programs of this machine, by name or path, with the libraries that they are linked with, at the same path.
	Programs []string
	// Entrypoint, Cmd and Env as in a Dockerfile.
	Entrypoint, Cmd, Env []string
}

// Write writes images into one archive. Folders of this machine must not change meanwhile.
func Write(to io.Writer, images ...Image) error {
	archive := tar.NewWriter(to)
	var manifest []map[string]any
	written := map[string]bool{}
	put := func(name string, content []byte) error {
		if written[name] {
			return nil
		}
		written[name] = true
		return add(archive, name, 0o644, content)
	}
	for _, image := range images {
		layer, err := image.layer()
		if err != nil {
			return fmt.Errorf("making image %s: %w", image.Name, err)
		}
		digest := fmt.Sprintf("%x", sha256.Sum256(layer))
		config, err := json.Marshal(map[string]any{
			"architecture": "amd64", "os": "linux",
			"config": map[string]any{"Entrypoint": image.Entrypoint, "Cmd": image.Cmd, "Env": append([]string{searchPath}, image.Env...)},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
		})
		if err != nil {
			return err
		}
		configName := fmt.Sprintf("%x.json", sha256.Sum256(config))
		if err := put(digest+"/layer.tar", layer); err != nil {
			return err
		}
		if err := put(configName, config); err != nil {
			return err
		}
		manifest = append(manifest, map[string]any{"Config": configName, "RepoTags": []string{image.Name}, "Layers": []string{digest + "/layer.tar"}})
	}
	content, err := json.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := add(archive, "manifest.json", 0o644, content); err != nil {
		return err
	}
	return archive.Close()
}

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// layer is the only layer of the image: a few programs of Debian, and busybox for the rest.
func (i Image) layer() ([]byte, error) {
	var buffer bytes.Buffer
	l := layer{tar: tar.NewWriter(&buffer), has: map[string]bool{}}
	// As in Debian, so that programs find their libraries.
	for _, folder := range []string{"bin", "sbin", "lib", "lib64"} {
		l.link("/"+folder, "usr/"+folder)
	}
	for _, folder := range []string{"/etc", "/root", "/run", "/var/lib", "/usr/bin", "/usr/sbin", "/usr/lib"} {
		l.folder(folder, 0o755)
	}
	l.folder("/tmp", 0o1777)
	l.link("/var/run", "../run")
	l.link("/etc/mtab", "/proc/self/mounts")
	l.text("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")
	l.text("/etc/group", "root:x:0:\nnogroup:x:65534:\n")
	for _, at := range slices.Sorted(maps.Keys(i.Texts)) {
		l.program(at, i.Texts[at])
	}
	for _, at := range slices.Sorted(maps.Keys(i.Links)) {
		l.link(at, i.Links[at])
	}
	for _, at := range slices.Sorted(maps.Keys(i.Files)) {
		l.copy(at, i.Files[at])
	}
	for _, program := range i.Programs {
		l.withLibraries(program)
	}
	l.busybox()
	return buffer.Bytes(), firstError(l.err, l.tar.Close())
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// layer being written. The first error stops it.
type layer struct {
	tar *tar.Writer
	has map[string]bool
	err error
}

// unused claims a path, and tells whether it was free. Debian has one folder for /bin and /usr/bin.
func (l *layer) unused(at string) bool {
	if l.err != nil {
		return false
	}
	at = merged(at)
	if l.has[at] {
		return false
	}
	l.has[at] = true
	return true
}

func merged(at string) string {
	top, rest, below := strings.Cut(strings.TrimPrefix(path.Clean(at), "/"), "/")
	if below && slices.Contains([]string{"bin", "sbin", "lib", "lib64"}, top) {
		return "/usr/" + top + "/" + rest
	}
	return "/" + strings.TrimPrefix(path.Clean(at), "/")
}

func (l *layer) header(at string, h tar.Header) {
	h.Name, h.ModTime = strings.TrimPrefix(at, "/"), time.Unix(0, 0) // the same files give the same image
	l.err = l.tar.WriteHeader(&h)
}

func (l *layer) folder(at string, mode int64) {
	if l.unused(at) {
		l.header(merged(at)+"/", tar.Header{Typeflag: tar.TypeDir, Mode: mode})
	}
}

func (l *layer) link(at, target string) {
	if l.unused(at) {
		l.header(merged(at), tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777})
	}
}

func (l *layer) text(at, text string)    { l.content(at, 0o644, []byte(text)) }
func (l *layer) program(at, text string) { l.content(at, 0o755, []byte(text)) }

func (l *layer) content(at string, mode fs.FileMode, content []byte) {
	if !l.unused(at) {
		return
	}
	l.header(merged(at), tar.Header{Typeflag: tar.TypeReg, Mode: int64(mode.Perm()), Size: int64(len(content))})
	if l.err == nil {
		_, l.err = l.tar.Write(content)
	}
}

// copy copies a file or folder of this machine. A link to a file is copied as that file.
func (l *layer) copy(at, from string) {
	if l.err != nil {
		return
	}
	info, err := os.Stat(from)
	if err != nil {
		l.err = err
		return
	}
	if !info.IsDir() {
		content, err := os.ReadFile(from)
		if err != nil {
			l.err = err
			return
		}
		l.content(at, info.Mode(), content)
		return
	}
	l.folder(at, 0o755)
	entries, err := os.ReadDir(from)
	if err != nil {
		l.err = err
	}
	for _, entry := range entries {
		l.copy(path.Join(at, entry.Name()), filepath.Join(from, entry.Name()))
	}
}

// withLibraries copies a program and the libraries that ldd names.
func (l *layer) withLibraries(program string) {
	if l.err != nil {
		return
	}
	found, err := exec.LookPath(program)
	if err != nil {
		l.err = fmt.Errorf("the image needs a program of this machine: %w", err)
		return
	}
	l.copy(found, found)
	// ldd fails for scripts and static programs, which need no libraries.
	libraries, _ := exec.Command("ldd", found).Output()
	for line := range strings.Lines(string(libraries)) {
		for _, field := range strings.Fields(line) {
			if strings.HasPrefix(field, "/") {
				l.copy(field, field)
			}
		}
	}
}

const busybox = "/bin/busybox"

// busybox adds the programs that a shell needs.
func (l *layer) busybox() {
	l.copy(busybox, busybox)
	if l.err != nil {
		return
	}
	applets, err := exec.Command(busybox, "--list-full").Output()
	if err != nil {
		l.err = fmt.Errorf("listing the programs of busybox (Debian: busybox-static): %w", err)
		return
	}
	for applet := range strings.Lines(string(applets)) {
		l.link("/"+strings.TrimSpace(applet), busybox)
	}
}

func add(archive *tar.Writer, name string, mode int64, content []byte) error {
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := archive.Write(content)
	return err
}
