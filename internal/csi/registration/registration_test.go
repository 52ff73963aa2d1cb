package registration

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/fairlead-io/fairlead/internal/csi/server"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// kubelet finds the driver's socket as the plugin watcher does, and asks who is there.
func kubelet(t *testing.T, dir string) registerapi.RegistrationClient {
	path := filepath.Join(dir, "d-reg.sock")
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(path); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no socket")
		}
	}
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Do(t, err)
	t.Cleanup(func() { conn.Close() })
	client := registerapi.NewRegistrationClient(conn)
	info, err := client.GetInfo(context.Background(), &registerapi.InfoRequest{}, grpc.WaitForReady(true))
	if err != nil || info.GetType() != "CSIPlugin" || info.GetName() != "d" || info.GetEndpoint() != "/csi.sock" || len(info.GetSupportedVersions()) != 1 {
		t.Fatalf("%v, %v", info, err)
	}
	return client
}

func start(t *testing.T, dir string) (*Registration, chan error, func()) {
	r := New("d", "/csi.sock", dir, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, server.Options{}) }()
	return r, ended, stop
}

func TestDriverRegisters(t *testing.T) {
	dir := t.TempDir()
	r, ended, stop := start(t, dir)
	if _, err := kubelet(t, dir).NotifyRegistrationStatus(context.Background(), &registerapi.RegistrationStatus{PluginRegistered: true}); err != nil || !r.Registered() {
		t.Error(err)
	}
	stop()
	must.Do(t, <-ended)
	if _, err := os.Lstat(filepath.Join(dir, "d-reg.sock")); err == nil {
		t.Error("the socket is left")
	}
}

func TestRefusedDriverEndsTheProcess(t *testing.T) {
	dir := t.TempDir()
	r, ended, _ := start(t, dir)
	if _, err := kubelet(t, dir).NotifyRegistrationStatus(context.Background(), &registerapi.RegistrationStatus{Error: "taken"}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "refused the driver d at /csi.sock: taken") || r.Registered() {
		t.Error(err)
	}
}

func TestCheckDriver(t *testing.T) {
	for name, want := range map[string]bool{
		"nfs.fairlead.io": true, "nfs.lb.csi.storage.gke.io": true, "a": true, strings.Repeat("a", 63): true,
		"": false, "../x": false, "a/b": false, "A": false, "a.": false, strings.Repeat("a", 64): false,
	} {
		must.Equal(t, CheckDriver(name) == nil, want, "%q", name)
	}
}
