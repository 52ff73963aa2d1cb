//go:build linux

package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func dial(t *testing.T, path string) *grpc.ClientConn {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no socket at ", path)
		}
	}
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	must.Do(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestCSINodeServesTheKubelet(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	dir := t.TempDir()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	health := free.Addr().String()
	free.Close()
	o := &csiNodeOptions{drivers: []string{"nfs.fairlead.io", "nfs.lb.csi.storage.gke.io"}, nodeName: "node-1", kubeletDir: dir, metricsListen: "0", healthListen: health, conntrack: true}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx, slog.New(slog.DiscardHandler)) }()

	for i, driver := range o.drivers {
		kubelet := registerapi.NewRegistrationClient(dial(t, filepath.Join(dir, "plugins_registry", driver+"-reg.sock")))
		info, err := kubelet.GetInfo(ctx, &registerapi.InfoRequest{})
		must.True(t, err == nil && info.GetName() == driver, "%v, %v", info, err)
		conn := dial(t, info.GetEndpoint())
		if got, err := csi.NewIdentityClient(conn).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}); err != nil || got.GetName() != driver {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := csi.NewNodeClient(conn).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{}); err != nil || got.GetNodeId() != "node-1" {
			t.Errorf("%v, %v", got, err)
		}
		if got := get(t, health, "/readyz"); !strings.Contains(got, o.drivers[i]) {
			t.Errorf("ready before the kubelet has registered all: %s", got)
		}
		if _, err := kubelet.NotifyRegistrationStatus(ctx, &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil {
			t.Error(err)
		}
	}
	if got := get(t, health, "/readyz"); got != "ok\n" {
		t.Error(got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func get(t *testing.T, address, path string) string {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		resp, err := http.Get("http://" + address + path)
		if err == nil {
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return string(text)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func TestCSINodeEndsWhenTheKubeletRefusesIt(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	o := &csiNodeOptions{drivers: []string{"nfs.fairlead.io"}, nodeName: "node-1", kubeletDir: t.TempDir()}
	ended := make(chan error, 1)
	go func() { ended <- o.run(context.Background(), slog.New(slog.DiscardHandler)) }()
	kubelet := registerapi.NewRegistrationClient(dial(t, filepath.Join(o.kubeletDir, "plugins_registry", "nfs.fairlead.io-reg.sock")))
	if _, err := kubelet.NotifyRegistrationStatus(context.Background(), &registerapi.RegistrationStatus{Error: "taken"}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "taken") {
		t.Error(err)
	}
}

func TestCSINodeRefusesBadFlags(t *testing.T) {
	for text, o := range map[string]*csiNodeOptions{
		"NODE_NAME":      {drivers: []string{"d"}, kubeletDir: "/k"},
		"not absolute":   {drivers: []string{"d"}, nodeName: "n", kubeletDir: "k"},
		"share the sock": {drivers: []string{"d", "e"}, nodeName: "n", kubeletDir: "/k", endpoint: "unix:///csi.sock"},
		"driver name":    {drivers: []string{"../d"}, nodeName: "n", kubeletDir: "/k"},
		"no driver":      {nodeName: "n", kubeletDir: "/k"},
		"three slashes":  {drivers: []string{"d"}, nodeName: "n", kubeletDir: "/k", endpoint: "unix://csi.sock"},
	} {
		if err := o.run(context.Background(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
