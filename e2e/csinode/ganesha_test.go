package csinode

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-io/fairlead/e2e/machine"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// ganeshaConfiguration is what longhorn-share-manager v1.7.1 writes (pkg/server/nfs), but for
// its recovery backend, which Debian's nfs-ganesha does not have.
const ganeshaConfiguration = `
NFS_Core_Param { NLM_Port = 0; MNT_Port = 0; RQUOTA_Port = 0; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; fsid_device = false; Protocols = 4; }
LOG { Default_Log_Level = INFO; Facility { name = FILE; destination = "%[1]s/ganesha.log"; enable = active; } }
NFSV4 { Lease_Lifetime = 20; Grace_Period = 30; Minor_Versions = 1, 2; RecoveryBackend = fs; Only_Numeric_Owners = true; }
Export_defaults { Protocols = 4; Transports = TCP; Access_Type = None; SecType = sys; Squash = None; }
EXPORT {
	Export_Id = 1; Path = %[1]s/export; Pseudo = /pvc-1; Protocols = 4; Transports = TCP; Access_Type = RW;
	Squash = None; SecType = sys; Filesystem_id = 1.0; FSAL { Name = VFS; }
}
`

// Options with which longhorn-manager v1.7.2 mounts (csi/node_server.go), with hard for softerr.
const longhornOptions = "vers=4.1,noresvport,timeo=600,retrans=5,hard"

const (
	ganeshaAddress = "10.9.0.1"
	ganeshaSource  = ganeshaAddress + ":/pvc-1"
)

// lab is a link that hosts have macvlan devices of, as Multus makes them, and a volume that a server of one of them exports.
type lab struct {
	t      *testing.T
	folder string
	server *exec.Cmd
	// started is the second in which the server was started.
	started int64
}

// host is a network with one link.
type host struct{ network string }

func newLab(t *testing.T) *lab {
	for _, name := range []string{"ganesha.nfsd", "ip", "mkfs.ext4", "nsenter", "unshare"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("SKIPPED: install nfs-ganesha, nfs-ganesha-vfs, iproute2 and e2fsprogs to try NFSv4: ", err)
		}
	}
	l := &lab{t: t, folder: t.TempDir()}
	must.Do(t, os.RemoveAll("/run/blkid")) // the UUID of the loop device's last volume, a part of handles
	must.Do(t, os.MkdirAll("/var/lib/nfs/ganesha", 0o755))
	disk := l.folder + "/disk"
	must.Do(t, os.WriteFile(disk, nil, 0o600))
	must.Do(t, os.Truncate(disk, 200<<20))
	must.Do(t, os.Mkdir(l.folder+"/export", 0o777))
	must.Do(t, os.WriteFile(l.folder+"/ganesha.conf", fmt.Appendf(nil, ganeshaConfiguration, l.folder), 0o600))
	t.Cleanup(func() {
		l.kill()
		_ = syscall.Unmount(l.folder+"/export", syscall.MNT_DETACH)
		_ = exec.Command("ip", "link", "del", "stor0").Run()
		must.Do(t, os.RemoveAll("/var/lib/nfs/ganesha"))
	})
	l.run("mkfs.ext4", "-q", disk)
	l.run("mount", "-o", "loop", disk, l.folder+"/export")
	l.run("ip", "link", "add", "stor0", "type", "veth", "peer", "name", "stor1")
	l.run("ip", "link", "set", "stor0", "up")
	l.run("ip", "link", "set", "stor1", "up")
	return l
}

func (l *lab) run(program string, args ...string) {
	l.t.Helper()
	if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
		l.t.Fatalf("%s %s: %v, %s", program, strings.Join(args, " "), err, out)
	}
}

// host makes a host without an address.
func (l *lab) host() *host {
	apart, err := machine.NewApart(machine.Spec{})
	must.Do(l.t, err)
	h := &host{network: apart.Path()}
	l.run("ip", "link", "add", "link", "stor0", "name", "eth0", "netns", h.network, "type", "macvlan", "mode", "bridge")
	return h
}

func (h *host) command(program string, args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=" + h.network, program}, args...)...)
}

// takes gives the host an address and announces it, as the CNI plugins do.
func (l *lab) takes(h *host, address string) *host {
	l.run("nsenter", "--net="+h.network, "sh", "-ec", "echo 1 > /proc/sys/net/ipv4/conf/eth0/arp_notify; ip addr add "+address+"/24 dev eth0; ip link set eth0 up")
	return h
}

func (l *lab) cutOff(h *host) {
	l.run("nsenter", "--net="+h.network, "ip", "link", "del", "eth0")
}

// serve starts the server in another second than the server before: ganesha numbers clients and
// sessions from the second of its start, and would take a lost session for another client's.
func (l *lab) serve(h *host) {
	wait(l.t, "the next second", func() bool { return time.Now().Unix() != l.started })
	l.started = time.Now().Unix()
	l.server = h.command("ganesha.nfsd", "-F", "-p", l.folder+"/pid", "-f", l.folder+"/ganesha.conf")
	must.Do(l.t, l.server.Start())
}

func (l *lab) kill() {
	if l.server != nil {
		_ = l.server.Process.Kill()
		_ = l.server.Wait()
		l.server = nil
	}
}

// mount mounts the volume, and repeats it until the server is there.
func (l *lab) mount(h *host, name, options string) string {
	path := filepath.Join(kubeletDir, "pods", name)
	must.Do(l.t, os.MkdirAll(path, 0o755))
	wait(l.t, "the mount", func() bool {
		out, err := h.command("mount", "-t", "nfs", "-o", options, ganeshaSource, path).CombinedOutput()
		if err != nil {
			l.t.Logf("%s", out)
		}
		return err == nil
	})
	l.t.Cleanup(func() {
		_ = syscall.Unmount(path, syscall.MNT_DETACH)
		wait(l.t, "the end of the client", func() bool { return len(processesOf(l.t, path)) == 0 })
		must.Do(l.t, os.Remove(path))
	})
	return path
}

// processesOf are the processes that serve a mount.
func processesOf(t *testing.T, path string) (pids []string) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must.Do(t, err)
	for _, file := range files {
		if text, _ := os.ReadFile(file); bytes.Contains(text, []byte("\x00"+path+"\x00")) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

func randomBytes(size int) []byte {
	b := make([]byte, size)
	_, _ = rand.Read(b)
	return b
}

// write copies bytes to a file and calls after for each of its pieces.
func write(path string, data []byte, after func(done int)) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for done := 0; done < len(data); {
		n, err := f.Write(data[done:min(len(data), done+100_000)])
		if err != nil {
			return err
		}
		done += n
		after(done)
	}
	return f.Close()
}

func same(t *testing.T, path string, data []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	must.Do(t, err)
	if sha256.Sum256(got) != sha256.Sum256(data) {
		t.Errorf("%s differs from what was written (%d bytes, %d written)", path, len(got), len(data))
	}
}

func TestNFSv4ClientsShareAVolume(t *testing.T) {
	l := newLab(t)
	l.serve(l.takes(l.host(), ganeshaAddress))
	a, b := l.mount(l.takes(l.host(), "10.9.0.11"), "a", longhornOptions), l.mount(l.takes(l.host(), "10.9.0.12"), "b", "vers=4.2,soft")
	data := randomBytes(20 << 20)
	must.Do(t, os.WriteFile(a+"/file", data, 0o640))
	same(t, b+"/file", data)
	must.Do(t, os.Mkdir(b+"/folder", 0o755))
	must.Do(t, os.Rename(b+"/file", b+"/folder/renamed"))
	must.Do(t, os.Truncate(a+"/folder/renamed", 5))
	f, err := os.OpenFile(b+"/folder/renamed", os.O_APPEND|os.O_RDWR, 0)
	must.Do(t, err)
	_, err = f.WriteString("more")
	must.Do(t, err)
	same(t, a+"/folder/renamed", append(data[:5:5], "more"...))
	must.Do(t, os.Symlink("renamed", a+"/folder/link"))
	must.Do(t, os.Link(a+"/folder/renamed", a+"/hard"))
	same(t, b+"/folder/link", append(data[:5:5], "more"...))
	must.Do(t, os.Chown(b+"/hard", 5, 6))
	must.Do(t, os.Remove(b+"/hard"))
	must.Do(t, os.Remove(b+"/folder/renamed"))
	if _, err := os.Lstat(a + "/folder/renamed"); !os.IsNotExist(err) {
		t.Error("the removed file is there yet:", err)
	}
	if text, err := io.ReadAll(io.NewSectionReader(f, 0, 100)); err != nil || !strings.HasSuffix(string(text), "more") {
		t.Errorf("the removed file that is open has %q, %v", text, err)
	}
	must.Do(t, f.Close())
	must.Do(t, os.Remove(b+"/folder/link"))
	wait(t, "the end of the removed file", func() bool { return os.Remove(a+"/folder") == nil })
	var space syscall.Statfs_t
	if err := syscall.Statfs(b, &space); err != nil || space.Blocks*uint64(space.Bsize) < 150<<20 {
		t.Errorf("%+v, %v", space, err)
	}
}

func TestNFSv4WriterGoesOnAtAnotherServer(t *testing.T) {
	l := newLab(t)
	at := l.takes(l.host(), ganeshaAddress)
	l.serve(at)
	a, b := l.mount(l.takes(l.host(), "10.9.0.11"), "a", longhornOptions), l.mount(l.takes(l.host(), "10.9.0.12"), "b", longhornOptions)
	idle, err := os.Create(b + "/idle")
	must.Do(t, err)
	defer idle.Close()
	data := randomBytes(20 << 20)
	move := func() {
		l.cutOff(at)
		at = l.takes(l.host(), ganeshaAddress)
	}
	for name, next := range map[string]func(){"restarted": func() {}, "moved": move} {
		began, wrote := time.Now(), make(chan error, 1)
		must.Do(t, write(a+"/"+name, data, func(done int) {
			if done != 5_000_000 {
				return
			}
			l.kill()
			began = time.Now()
			go func() {
				_, err := idle.WriteString(name)
				wrote <- err
			}()
			next()
			l.serve(at)
		}))
		must.Do(t, <-wrote)
		t.Logf("%s: both clients have written after %s", name, time.Since(began).Round(time.Millisecond))
		same(t, b+"/"+name, data)
		t.Logf("%s: a file was opened after %s", name, time.Since(began).Round(time.Millisecond))
	}
	if info, err := idle.Stat(); err != nil || info.Size() != int64(len("restartedmoved")) {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCallersOfAHungNFSv4ServerCanBeKilled(t *testing.T) {
	l := newLab(t)
	l.serve(l.takes(l.host(), ganeshaAddress))
	a := l.mount(l.takes(l.host(), "10.9.0.11"), "a", longhornOptions)
	must.Do(t, os.WriteFile(a+"/file", []byte("text"), 0o644))
	must.Do(t, machine.Pause(l.server.Process.Pid))
	killed, patient := exec.Command("cp", a+"/file", l.folder+"/copy"), exec.Command("cp", a+"/file", l.folder+"/copy")
	must.Do(t, killed.Start())
	must.Do(t, patient.Start())
	wait(t, "the callers", func() bool { return inFuse(killed) && inFuse(patient) })
	must.Do(t, patient.Process.Signal(syscall.SIGURG)) // ends no program, and no call
	must.Do(t, killed.Process.Kill())
	_ = killed.Wait()
	must.Do(t, l.server.Process.Signal(syscall.SIGCONT))
	must.Do(t, patient.Wait())
	same(t, l.folder+"/copy", []byte("text"))
}

// inFuse says whether a process waits for an answer of FUSE.
func inFuse(c *exec.Cmd) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", c.Process.Pid))
	return err == nil && strings.Contains(string(text), "fuse") || strings.Contains(string(text), "request_wait_answer")
}

// A mount that a container makes is the node's: it outlives the container, not its network.
func TestAgentMountsForContainers(t *testing.T) {
	l := newLab(t)
	l.run("mount", "--bind", kubeletDir, kubeletDir)
	l.run("mount", "--make-shared", kubeletDir)
	agent := exec.Command(program("nfsmount"), "agent")
	agent.Stderr = t.Output()
	must.Do(t, agent.Start())
	t.Cleanup(func() {
		_ = agent.Process.Kill()
		_ = agent.Wait()
		must.Do(t, os.Remove(kubeletDir+"/nfsmount.sock"))
		must.Do(t, syscall.Unmount(kubeletDir, syscall.MNT_DETACH))
	})
	wait(t, "the agent", func() bool { _, err := os.Stat(kubeletDir + "/nfsmount.sock"); return err == nil })
	l.serve(l.takes(l.host(), ganeshaAddress))
	pod := l.takes(l.host(), "10.9.0.11")
	path := kubeletDir + "/staging"
	must.Do(t, os.MkdirAll(path, 0o755))
	container := pod.command("unshare", "--mount", "--propagation=unchanged", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-ec",
		"mount --make-rslave /; umount /proc || true; mount -t proc proc /proc; "+
			"until mount -t nfs -o "+longhornOptions+" "+ganeshaSource+" "+path+"; do :; done; echo text > "+path+"/file; echo mounted; exec cat")
	input, err := container.StdinPipe()
	must.Do(t, err)
	defer input.Close()
	output, err := container.StdoutPipe()
	must.Do(t, err)
	container.Stderr = t.Output()
	must.Do(t, container.Start())
	said := make([]byte, 8)
	_, err = io.ReadFull(output, said)
	must.Do(t, err)
	same(t, path+"/file", []byte("text\n"))
	must.Do(t, container.Process.Kill())
	_ = container.Wait()
	same(t, path+"/file", []byte("text\n"))
	l.cutOff(pod)
	reader := exec.Command("stat", path+"/other")
	must.Do(t, reader.Start())
	wait(t, "the reader", func() bool { return inFuse(reader) })
	must.Do(t, syscall.Unmount(path, syscall.MNT_DETACH))
	must.Do(t, reader.Process.Kill())
	_ = reader.Wait()
	wait(t, "the end of the client", func() bool { return len(processesOf(t, path)) == 0 })
	must.Do(t, os.Remove(path))
}
