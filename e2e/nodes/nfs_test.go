//go:build linux

package nodes

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
)

const nfsServices = `apiVersion: fairlead.io/v1alpha1
kind: NFSService
metadata: {name: pool, namespace: storage}
spec:
  exposure: PerNodeStable
  versions: [3, 4]
  shares: [/exports/data]
  serverService: {name: pool-servers}
  health: {interval: 1s, mountPort: 20048}
---
apiVersion: fairlead.io/v1alpha1
kind: NFSService
metadata: {name: direct, namespace: storage}
spec:
  exposure: PerNode
  versions: [3, 4]
  shares: [/exports/data]
  backends: [{address: %[1]s}, {address: %[2]s}, {address: %[3]s}]
---
apiVersion: fairlead.io/v1alpha1
kind: NFSService
metadata: {name: single, namespace: storage}
spec:
  exposure: PerNode
  versions: [3, 4]
  backends: [{address: %[4]s}]
`

const nfsVolume = `apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  accessModes: [ReadWriteMany]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: ""
  mountOptions: [%[3]s]
  csi:
    driver: nfs.fairlead.io
    volumeHandle: storage/%[1]s
    volumeAttributes: {service: storage/%[2]s, share: /exports/data}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: default}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}, storageClassName: "", volumeName: %[1]s}
`

// nfsVersions are mount options by the end of a volume's name.
var nfsVersions = map[string]string{"v3": "vers=3, proto=tcp, nolock, mountport=20048", "v4": "vers=4.1"}

// failingOver are volumes whose servers can be replaced, or come back.
var failingOver = []string{"pool-v3", "pool-v4", "direct-v3", "direct-v4"}

// TestNFSServices uses NFS servers that are pods, through Fairlead's CSI driver and the real kubelets.
func TestNFSServices(t *testing.T) {
	ctx, c := start(t)
	s := &nfsScene{Cluster: c, ctx: ctx}
	s.install(t)
	s.createVolumes(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Registered", s.testRegistered},
		{"BothExposures", s.testExposures},
		{"ServersKilled", s.testServersKilled},
		{"ServerHangs", s.testServerHangs},
		{"ServiceDeleted", s.testServiceDeleted},
		{"KubeletRestarted", s.testKubeletRestarted},
		{"PluginKilled", s.testPluginKilled},
		{"HungServer", s.testHungServer},
		{"NothingIsLeft", s.testNothingIsLeft},
	} {
		if !t.Run(test.name, test.run) {
			return
		}
	}
}

func (s *nfsScene) createVolumes(t *testing.T) {
	addresses := map[string]string{}
	for _, name := range s.servers {
		addresses[name] = s.serverAddress(t, name)
	}
	services := fmt.Sprintf(nfsServices, addresses["direct-1"], addresses["direct-2"], addresses["direct-3"], addresses["single"])
	s.kubectl(t, services, "apply", "--server-side", "-f", "-")
	for _, service := range []string{"pool", "direct", "single"} {
		s.nfsService(t, service)
		for version, options := range nfsVersions {
			name := service + "-" + version
			s.kubectl(t, fmt.Sprintf(nfsVolume, name, service, options), "apply", "--server-side", "-f", "-")
		}
	}
}

func (s *nfsScene) testRegistered(t *testing.T) {
	for _, n := range s.Nodes {
		var node storagev1.CSINode
		must(t, s.Client.Get(s.ctx, client.ObjectKey{Name: n.Name}, &node))
		if !slices.ContainsFunc(node.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == "nfs.fairlead.io" && d.NodeID == n.Name }) {
			t.Errorf("%s has the drivers %v", n.Name, node.Spec.Drivers)
		}
	}
}

// run starts a workload for each volume on a node.
func (s *nfsScene) run(t *testing.T, n *Node, volumes ...string) {
	t.Helper()
	for _, volume := range volumes {
		must(t, s.Run(s.ctx, Workload{Name: workloadName(volume, n), Claim: volume, Node: n.Name}))
	}
}

func workloadName(volume string, n *Node) string { return volume + "-" + n.Name }

// pod waits for a workload's pod.
func (s *nfsScene) pod(t *testing.T, volume string, n *Node) *corev1.Pod {
	t.Helper()
	pod, err := s.WaitWorkload(s.ctx, workloadName(volume, n))
	must(t, err)
	return pod
}

// mountOf a workload's pod: just one.
func (s *nfsScene) mountOf(t *testing.T, volume string, n *Node) nfsMount {
	t.Helper()
	mounts := n.nfsMounts(t, string(s.pod(t, volume, n).UID))
	if len(mounts) != 1 {
		t.Fatalf("the pod of %s has the mounts %v", workloadName(volume, n), mounts)
	}
	return mounts[0]
}

func (s *nfsScene) shell(t *testing.T, volume string, n *Node, command string) string {
	t.Helper()
	out, err := s.Shell(s.ctx, workloadName(volume, n), command)
	if err != nil {
		t.Fatalf("%s: %q: %v\n%s", workloadName(volume, n), command, err, out)
	}
	return out
}

func sourceAddress(m nfsMount) string {
	address, _, _ := strings.Cut(m.Source, ":/")
	return address
}

func (s *nfsScene) testExposures(t *testing.T) {
	writer, reader := s.Nodes[0], s.Nodes[1]
	s.run(t, writer, failingOver...)
	s.run(t, reader, failingOver...)
	for _, volume := range failingOver {
		for _, n := range []*Node{writer, reader} {
			address := sourceAddress(s.mountOf(t, volume, n))
			if strings.HasPrefix(volume, "direct") {
				s.server(t, address)
			} else if s.slotBackend(t, address) == "" {
				t.Errorf("%s has mounted %s, which leads to no server", workloadName(volume, n), address)
			}
		}
		written := s.shell(t, volume, writer, "dd if=/dev/urandom of=/data/"+volume+" bs=1M count=20 2>/dev/null; sha256sum < /data/"+volume)
		if read := s.shell(t, volume, reader, "sha256sum < /data/"+volume); read != written {
			t.Errorf("%s: %s was written, and %s is read on another node", volume, written, read)
		}
		s.sameOnServers(t, volume, written)
	}
}

// slotBackend is the address of the server to which a slot's address leads.
func (s *nfsScene) slotBackend(t *testing.T, address string) string {
	t.Helper()
	var service v1alpha1.NFSService
	must(t, s.Client.Get(s.ctx, client.ObjectKey{Namespace: nfsNamespace, Name: "pool"}, &service))
	for _, slot := range service.Status.Slots {
		if slot.Address == address {
			backend, _, _ := strings.Cut(slot.Backend, ":")
			return backend
		}
	}
	return ""
}

func (s *nfsScene) sameOnServers(t *testing.T, file, sum string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(s.SharedFolder(), file))
	must(t, err)
	if have := fmt.Sprintf("%x", sha256.Sum256(content)); len(content) < 20<<20 || !strings.HasPrefix(sum, have) {
		t.Errorf("%s has %d bytes and the sum %s on the servers, and %s was written", file, len(content), have, sum)
	}
}

// slowCopy writes 24 MB or more through one open file, until the shared folder has a certain file, and reads the copy again.
const slowCopy = `cd /tmp; {
  ( set -e
    ( set -e; i=0
      while [ $i -lt 96 ] || ! [ -e /data/%[2]s ]; do
        dd if=/dev/urandom of=part bs=256k count=1 2>/dev/null
        cat part >> %[1]s
        dd if=part bs=256k 2>/dev/null
        cut -d' ' -f1 /proc/uptime >> %[1]s.times
        usleep 30000; i=$((i+1))
      done ) > /data/%[1]s
    cmp %[1]s /data/%[1]s )
  echo $? > %[1]s.status
} < /dev/null > %[1]s.log 2>&1 &`

// longestGap between the times that the lines of a file begin with.
const longestGap = `awk 'NR > 1 && $1 - last > most { most = $1 - last } { last = $1 } END { print most + 0 }' %s`

// copyWhile copies files on a node while do runs. The copies must end well, without a new mount or pod.
func (s *nfsScene) copyWhile(t *testing.T, n *Node, what string, volumes []string, do func()) {
	t.Helper()
	mounts := map[string]nfsMount{}
	enough := what + "-enough"
	for _, volume := range volumes {
		mounts[volume] = s.mountOf(t, volume, n)
		s.shell(t, volume, n, fmt.Sprintf(slowCopy, volume+what, enough))
	}
	for _, volume := range volumes {
		s.wait(t, "the first bytes of "+volume+what, func() error {
			info, err := os.Stat(filepath.Join(s.SharedFolder(), volume+what))
			if err == nil && info.Size() < 2<<20 {
				return fmt.Errorf("it has %d bytes", info.Size())
			}
			return err
		})
	}
	do()
	must(t, writeFile(filepath.Join(s.SharedFolder(), enough), ""))
	for _, volume := range volumes {
		s.wait(t, "the copy "+volume+what, func() error {
			out, err := s.Shell(s.ctx, workloadName(volume, n), "cat /tmp/"+volume+what+".status")
			if err == nil && out != "0" {
				t.Fatalf("the copy %s has ended with %s: %s", volume+what, out, s.shell(t, volume, n, "cat /tmp/"+volume+what+".log"))
			}
			return err
		})
		s.sameOnServers(t, volume+what, s.shell(t, volume, n, "sha256sum < /tmp/"+volume+what))
		t.Logf("%s: the longest pause was %s s", volume, s.shell(t, volume, n, fmt.Sprintf(longestGap, "/tmp/"+volume+what+".times")))
		if now := s.mountOf(t, volume, n); now != mounts[volume] {
			t.Errorf("%s was mounted as %v and is mounted as %v now", volume, mounts[volume], now)
		}
	}
}

// testServersKilled kills a slot's server, which stays away, and a node's server, which comes back.
func (s *nfsScene) testServersKilled(t *testing.T) {
	n := s.Nodes[0]
	slot := sourceAddress(s.mountOf(t, "pool-v4", n))
	before := s.slotBackend(t, slot)
	pool, direct := s.server(t, before), s.server(t, sourceAddress(s.mountOf(t, "direct-v4", n)))
	s.copyWhile(t, n, "-killed", failingOver, func() {
		old := s.serverProcess(t, direct, 0)
		kill(t, s.serverProcess(t, pool, 0), syscall.SIGKILL)
		kill(t, old, syscall.SIGKILL)
		s.waitMoved(t, slot, before)
		s.serverProcess(t, direct, old)
	})
}

// waitMoved waits until a slot leads to another server.
func (s *nfsScene) waitMoved(t *testing.T, slot, before string) {
	t.Helper()
	s.wait(t, "slot "+slot+" to move", func() error {
		if now := s.slotBackend(t, slot); now == before || now == "" {
			return fmt.Errorf("it leads to %q", now)
		}
		return nil
	})
}

// testServerHangs has the server of a slot hang, when a new server has replaced the killed one.
func (s *nfsScene) testServerHangs(t *testing.T) {
	n := s.Nodes[0]
	s.startServer(t, "pool-4", 0, corev1.RestartPolicyNever)
	s.serverAddress(t, "pool-4")
	s.wait(t, "three servers", func() error {
		if count := s.nfsService(t, "pool").Status.BackendCount; count != 3 {
			return fmt.Errorf("there are %d", count)
		}
		return nil
	})
	slot := sourceAddress(s.mountOf(t, "pool-v4", n))
	before := s.slotBackend(t, slot)
	server := s.serverProcess(t, s.server(t, before), 0)
	s.copyWhile(t, n, "-hangs", []string{"pool-v3", "pool-v4"}, func() {
		kill(t, server, syscall.SIGSTOP)
		s.waitMoved(t, slot, before)
	})
	kill(t, server, syscall.SIGCONT)
	s.nfsService(t, "pool")
}

// testServiceDeleted deletes the Service of a slot, which comes back with its ClusterIP.
func (s *nfsScene) testServiceDeleted(t *testing.T) {
	n := s.Nodes[0]
	slot := sourceAddress(s.mountOf(t, "pool-v4", n))
	service := func() (*corev1.Service, error) {
		var all corev1.ServiceList
		if err := s.Client.List(s.ctx, &all, client.InNamespace(nfsNamespace)); err != nil {
			return nil, err
		}
		for i := range all.Items {
			if all.Items[i].Spec.ClusterIP == slot {
				return &all.Items[i], nil
			}
		}
		return nil, fmt.Errorf("no Service has %s", slot)
	}
	old, err := service()
	must(t, err)
	s.copyWhile(t, n, "-deleted", []string{"pool-v3", "pool-v4"}, func() {
		must(t, s.Client.Delete(s.ctx, old))
		s.wait(t, "another Service", func() error {
			now, err := service()
			if err == nil && now.UID == old.UID {
				return errors.New("the old one is there")
			}
			return err
		})
	})
}

func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, signal); err != nil {
		t.Fatalf("%s to %d: %v", signal, pid, err)
	}
}

func (s *nfsScene) testKubeletRestarted(t *testing.T) {
	n := s.Nodes[0]
	s.copyWhile(t, n, "-kubelet", failingOver, func() {
		old := s.kubelet(t, n, 0)
		kill(t, old, syscall.SIGKILL)
		s.kubelet(t, n, old)
		s.wait(t, "the new kubelet", func() error {
			_, err := s.Shell(s.ctx, workloadName("pool-v4", n), "true")
			return err
		})
	})
}

func (s *nfsScene) testPluginKilled(t *testing.T) {
	n := s.Nodes[0]
	s.copyWhile(t, n, "-plugin", failingOver, func() {
		old := s.plugin(t, n, 0)
		kill(t, old, syscall.SIGKILL)
		s.plugin(t, n, old)
	})
}

// testHungServer has one server hang while a volume of the server is in use and another is mounted. Other servers' volumes can
// be mounted meanwhile.
func (s *nfsScene) testHungServer(t *testing.T) {
	n := s.Nodes[2]
	hung := []string{"single-v3", "single-v4"}
	s.run(t, n, hung...)
	address := sourceAddress(s.mountOf(t, "single-v3", n))
	for _, volume := range hung {
		s.pod(t, volume, n)
		s.shell(t, volume, n, "echo before > /data/"+volume)
	}
	server := s.serverProcess(t, s.server(t, address), 0)
	kill(t, server, syscall.SIGSTOP)
	for _, volume := range hung {
		s.shell(t, volume, n, "{ cat /data/"+volume+" && echo more > /data/more-"+volume+" && touch /tmp/done; } < /dev/null > /tmp/log 2>&1 &")
	}
	late := Workload{Name: "late", Claim: "single-v4", Node: n.Name}
	must(t, s.Run(s.ctx, late))
	s.wait(t, "late to be mounted", func() error { return s.beingMounted(t, late.Name, n) })

	for _, volume := range failingOver {
		s.run(t, n, volume)
	}
	for _, volume := range failingOver {
		pod := s.pod(t, volume, n)
		s.sameOnServers(t, volume, s.shell(t, volume, n, "sha256sum < /data/"+volume))
		if err := s.Remove(s.ctx, workloadName(volume, n)); err != nil {
			t.Error(err)
		}
		s.gone(t, n, pod)
	}

	s.wait(t, "late to be mounted", func() error { return s.beingMounted(t, late.Name, n) })
	old := s.plugin(t, n, 0)
	kill(t, old, syscall.SIGKILL)
	s.plugin(t, n, old)
	for _, volume := range hung {
		if out := s.shell(t, volume, n, "ls /tmp"); strings.Contains(out, "done") {
			t.Errorf("%s was written while its server hung", volume)
		}
	}
	kill(t, server, syscall.SIGCONT)
	for _, volume := range hung {
		s.wait(t, volume+" to go on", func() error {
			_, err := s.Shell(s.ctx, workloadName(volume, n), "ls /tmp/done && cat /data/more-"+volume)
			return err
		})
	}
	_, err := s.WaitWorkload(s.ctx, late.Name)
	must(t, err)
	if out, err := s.Shell(s.ctx, late.Name, "cat /data/single-v4"); err != nil || out != "before" {
		t.Errorf("late reads %q, %v", out, err)
	}
}

// beingMounted tells whether a mount for a workload's pod waits for its server.
func (s *nfsScene) beingMounted(t *testing.T, workload string, n *Node) error {
	pods, err := s.PodsWith(s.ctx, "default", "app", workload)
	if err != nil {
		return err
	}
	if len(pods) != 1 || len(mountProcesses(t, &pods[0])) == 0 || len(n.nfsMounts(t, string(pods[0].UID))) > 0 {
		return fmt.Errorf("%d pods, and no mount that waits", len(pods))
	}
	return nil
}

// mountProcesses make or serve the mounts of a pod.
func mountProcesses(t *testing.T, pod *corev1.Pod) []int {
	t.Helper()
	return processes(t, "", "cmdline", "/pods/"+string(pod.UID)+"/")
}

// gone waits until a node has nothing of a pod.
func (s *nfsScene) gone(t *testing.T, n *Node, pod *corev1.Pod) {
	t.Helper()
	s.wait(t, pod.Name+" to leave nothing", func() error {
		if mounts := n.nfsMounts(t, string(pod.UID)); len(mounts) > 0 {
			return fmt.Errorf("mounts %v", mounts)
		}
		if pids := mountProcesses(t, pod); len(pids) > 0 {
			return fmt.Errorf("processes %v", pids)
		}
		folder := filepath.Join(n.Dir, "disk/var/lib/kubelet/pods", string(pod.UID))
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			return fmt.Errorf("%s is there (%v)", folder, err)
		}
		return nil
	})
}

func (s *nfsScene) testNothingIsLeft(t *testing.T) {
	var pods corev1.PodList
	must(t, s.Client.List(s.ctx, &pods, client.InNamespace("default")))
	s.kubectl(t, "", "delete", "deployment", "--all", "--cascade=foreground", "--timeout=1m")
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, n := range s.Nodes {
			if n.Name == pod.Spec.NodeName {
				s.gone(t, n, pod)
			}
		}
	}
	for _, n := range s.Nodes {
		if mounts := n.nfsMounts(t, ""); len(mounts) > 0 {
			t.Errorf("%s has the mounts %v", n.Name, mounts)
		}
	}
	s.wait(t, "the end of all attachments", func() error {
		var list storagev1.VolumeAttachmentList
		if err := s.Client.List(s.ctx, &list); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("there are %d", len(list.Items))
		}
		return nil
	})
}
