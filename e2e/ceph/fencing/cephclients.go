package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/ceph"
	"github.com/fairlead-io/fairlead/internal/cephclients"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
	"github.com/fairlead-io/fairlead/internal/testkit/certtest"
)

// cephClients runs the server as its pod does, with ceph.conf and keyring in /etc/ceph and nothing else, and asks
// it as the controller does.
func (s *show) cephClients(ctx context.Context) error {
	image, writer, err := s.writer(ctx, s.Node1, "clients")
	if err != nil {
		return err
	}
	defer writer.Terminate()
	_, mount, err := s.Node2.Mount(ctx, volume1)
	if err != nil {
		return err
	}
	defer ceph.Unmount(mount)
	copies, err := s.copies(ctx)
	if err != nil {
		return err
	}
	process, asker, err := s.serve(ctx)
	if err != nil {
		return err
	}
	defer process.Kill()
	objects := []client.Object{
		persistentVolume("image", "rbd.csi.ceph.com", map[string]string{"pool": image.Pool, "imageName": image.Volume.Image}),
		persistentVolume("directory", "cephfs.csi.ceph.com", map[string]string{"fsName": ceph.FileSystem(), "subvolumePath": volume1}),
	}
	for _, c := range copies {
		objects = append(objects, persistentVolume(c.Volume.Image, "rbd.csi.ceph.com", map[string]string{"pool": c.Pool, "radosNamespace": c.Namespace, "imageName": c.Volume.Image}))
	}
	scheme, err := reads.NewScheme()
	if err != nil {
		return err
	}
	asker.Live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	if asker.Held, err = fencingreads.ListedHoldings(ctx, asker.Live, profiles.RookCeph().Serves); err != nil {
		return err
	}
	facts := fence.Facts{Now: time.Now(), Node: fence.Node{Name: s.Node1.Name, Addresses: []netip.Addr{s.Node1.Address}}}
	for _, o := range objects {
		facts.Holding = append(facts.Holding, v1alpha1.HeldVolume{PersistentVolume: o.GetName()})
	}
	for _, cephFS := range []bool{false, true} {
		if cephFS {
			caps := append(slices.Clone(ceph.ClientsCaps), ceph.CephFSCaps...)
			if _, err := s.Ceph(ctx, append([]string{"auth", "caps", "client." + ceph.ClientsUser}, caps...)...); err != nil {
				return err
			}
		}
		began := time.Now()
		report, err := asker.Report(ctx, facts)
		want := map[string][]netip.Addr{"image": {s.Node1.Address}}
		for _, c := range copies {
			want[c.Volume.Image] = nil
		}
		if cephFS {
			want["directory"] = []netip.Addr{s.Node2.Address}
		}
		if cephFS != (err == nil) || !cephFS && !strings.Contains(err.Error(), "EACCES") {
			return fmt.Errorf("with the right to ask an MDS: %t: %w", cephFS, err)
		}
		if len(report.Clients) != len(want) {
			return fmt.Errorf("answers for %v, want %v", report.Clients, want)
		}
		var open []string
		for _, c := range report.Clients {
			open = append(open, fmt.Sprintf("%s from %v", c.Volume.PersistentVolume, c.Addresses))
			if !slices.Equal(c.Addresses, want[c.Volume.PersistentVolume]) {
				return fmt.Errorf("%s is open from %v, want %v", c.Volume.PersistentVolume, c.Addresses, want)
			}
		}
		for _, daemon := range []string{"mgr.x", "mds.a", "mds.b"} {
			if !slices.Contains(report.Servers[0].Addresses, s.Host(daemon).Address) {
				return fmt.Errorf("the address of %s is not among %v", daemon, report.Servers)
			}
		}
		s.report("answered in %s, with the right to ask an MDS: %t: open are %s", short(time.Since(began)), cephFS, strings.Join(open, ", "))
	}
	return nil
}

// copies makes images that are opened in other ways: in a namespace, and copies of which one's parent is gone.
func (s *show) copies(ctx context.Context) ([]ceph.Image, error) {
	pool := ceph.NewImage("").Pool
	for _, line := range []string{
		"ceph osd set-require-min-compat-client mimic",
		"rbd namespace create " + pool + "/space", "rbd create " + pool + "/space/inner --size 64M",
		"rbd create " + pool + "/parent --size 64M", "rbd snap create " + pool + "/parent@s",
		"rbd clone --rbd-default-clone-format 2 " + pool + "/parent@s " + pool + "/child", "rbd trash mv " + pool + "/parent",
	} {
		words := strings.Fields(line)
		if _, err := s.Admin.Run(ctx, words[0], words[1:]...); err != nil {
			return nil, err
		}
	}
	inner := ceph.NewImage("inner")
	inner.Namespace = "space"
	return []ceph.Image{inner, ceph.NewImage("child")}, nil
}

func persistentVolume(name, driver string, attributes map[string]string) *corev1.PersistentVolume {
	attributes["clusterID"] = "rook-ceph"
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name, VolumeAttributes: attributes}},
	}}
}

// serve starts the server where commands are given, and waits until it can be reached.
func (s *show) serve(ctx context.Context) (*ceph.Process, cephclients.Reporter, error) {
	none := cephclients.Reporter{}
	directory := func(name string) string { return filepath.Join(s.Directory, "ceph-clients", name) }
	ca, err := certtest.New()
	if err != nil {
		return nil, none, err
	}
	for _, name := range []string{"etc", "server", "controller"} {
		if err := os.MkdirAll(directory(name), 0o755); err != nil {
			return nil, none, err
		}
	}
	conf, err1 := s.Ceph(ctx, "config", "generate-minimal-conf")
	keyring, err2 := s.Ceph(ctx, append([]string{"auth", "get-or-create", "client." + ceph.ClientsUser}, ceph.ClientsCaps...)...)
	err = errors.Join(err1, err2,
		os.WriteFile(filepath.Join(directory("etc"), "ceph.conf"), conf, 0o644),
		os.WriteFile(filepath.Join(directory("etc"), "keyring"), keyring, 0o600),
		ca.Write(directory("server"), s.Admin.Address.String(), x509.ExtKeyUsageServerAuth),
		ca.Write(directory("controller"), cephclients.ClientName, x509.ExtKeyUsageClientAuth),
		s.Join(ctx, 20))
	if err != nil {
		return nil, none, err
	}
	// As the Secret is in the pod. Mounts are seen by this program only.
	if out, err := exec.CommandContext(ctx, "mount", "--bind", directory("etc"), "/etc/ceph").CombinedOutput(); err != nil {
		return nil, none, fmt.Errorf("mounting at /etc/ceph: %w: %s", err, out)
	}
	binary, err := filepath.Abs(s.binary)
	if err != nil {
		return nil, none, err
	}
	address := net.JoinHostPort(s.Admin.Address.String(), "9445")
	process, err := s.Admin.Start("ceph-clients", "env", "-u", "CEPH_CONF", "CEPH_ARGS=--id "+ceph.ClientsUser,
		binary, "ceph-clients", "--listen", address, "--certificates", directory("server"))
	if err != nil {
		return nil, none, err
	}
	err = ceph.Wait(ctx, 30*time.Second, "fairlead ceph-clients at "+address, func() (bool, error) {
		if !process.Running() {
			return false, errors.New(process.Tail())
		}
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil, nil
	})
	return process, cephclients.Reporter{ClusterID: "rook-ceph", Ask: cephclients.Ask("https://"+address, directory("controller"))}, err
}
