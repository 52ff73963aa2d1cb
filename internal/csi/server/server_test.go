package server

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// identity is a service whose calls do what a test wants.
type identity struct {
	csi.UnimplementedIdentityServer
	probe func() error
}

func (i *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, i.probe()
}

func start(t *testing.T, o Options, i *identity) (*grpc.ClientConn, func() error) {
	path := filepath.Join(t.TempDir(), "csi.sock")
	ctx, stop := context.WithCancel(context.Background())
	listening, served := make(chan struct{}), make(chan error, 1)
	go func() {
		served <- Serve(ctx, path, o, func() { close(listening) }, func(r grpc.ServiceRegistrar) { csi.RegisterIdentityServer(r, i) })
	}()
	<-listening
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must.Do(t, err)
	t.Cleanup(func() { conn.Close(); stop() })
	return conn, func() error { stop(); return <-served }
}

func probe(conn *grpc.ClientConn) error {
	_, err := csi.NewIdentityClient(conn).Probe(context.Background(), &csi.ProbeRequest{})
	return err
}

// In the GKE driver a call of a service that the process does not run ends the process.
func TestMissingServiceIsUnimplemented(t *testing.T) {
	conn, _ := start(t, Options{}, &identity{probe: func() error { return nil }})
	for range 2 {
		_, err := csi.NewControllerClient(conn).ControllerPublishVolume(context.Background(), &csi.ControllerPublishVolumeRequest{})
		if status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
		_, err = csi.NewNodeClient(conn).NodePublishVolume(context.Background(), &csi.NodePublishVolumeRequest{})
		if status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
	}
	must.Do(t, probe(conn))
}

func TestPanicBecomesInternal(t *testing.T) {
	var log bytes.Buffer
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	must.Do(t, err)
	conn, _ := start(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Metrics: metrics}, &identity{probe: func() error { panic("defect") }})
	if err := probe(conn); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "defect") {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "stack=") {
		t.Error(log.String())
	}
	families, _ := registry.Gather()
	if len(families) != 1 || !strings.Contains(families[0].String(), "Internal") {
		t.Error(families)
	}
}

// The GKE driver exits at once on SIGTERM, and cuts the calls that run.
func TestStopLetsCallsEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	conn, stop := start(t, Options{}, &identity{probe: func() error { close(entered); <-release; return nil }})
	result := make(chan error)
	go func() { result <- probe(conn) }()
	<-entered
	stopped := make(chan error)
	go func() { stopped <- stop() }()
	for probe(conn) == nil { // until new calls are refused
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-stopped:
		t.Fatal("stopped before the call ended", err)
	default:
	}
	close(release)
	must.Do(t, <-result)
	must.Do(t, <-stopped)
}

func TestStopCutsCallsThatDoNotEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	conn, stop := start(t, Options{StopTimeout: 10 * time.Millisecond}, &identity{probe: func() error { close(entered); <-release; return nil }})
	result := make(chan error)
	go func() { result <- probe(conn) }()
	<-entered
	go stop()
	if err := <-result; status.Code(err) != codes.Unavailable {
		t.Error(err)
	}
}

func TestListenReplacesOnlyStaleSockets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "csi.sock")
	first, removeFirst, err := listen(path)
	must.Do(t, err)
	info, err := os.Stat(path)
	must.True(t, err == nil && info.Mode().Perm() == 0o600, "%v, %v", info, err)
	second, removeSecond, err := listen(path) // the first has not ended yet: a rolling update
	must.Do(t, err)
	removeFirst()
	must.Do(t, first.Close())
	if _, err := net.Dial("unix", path); err != nil {
		t.Error("the end of the first process removed the socket of the second:", err)
	}
	removeSecond()
	must.Do(t, second.Close())
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
	must.Do(t, os.WriteFile(path, nil, 0o600))
	if _, _, err := listen(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Error(err)
	}
}

func TestParseEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"unix:///csi/csi.sock": "/csi/csi.sock", "unix://tmp/csi.sock": "", "tcp://0.0.0.0:1": "", "/csi.sock": "", "unix:///a/../b": "", "unix:///": "",
		"unix:///" + strings.Repeat("a", 107): "",
	} {
		if got, err := ParseEndpoint(endpoint); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", endpoint, got, err)
		}
	}
}
