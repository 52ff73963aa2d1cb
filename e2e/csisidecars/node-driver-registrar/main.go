// node-driver-registrar registers a CSI driver with the kubelet, for pods that expect
// Kubernetes' program of this name. It has those of its flags that Longhorn passes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/connection"
	"github.com/kubernetes-csi/csi-lib-utils/rpc"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	klog.InitFlags(nil)
	address := flag.String("csi-address", "/run/csi/socket", "socket of the CSI driver")
	endpoint := flag.String("kubelet-registration-path", "", "the same socket, as the kubelet sees it")
	folder := flag.String("plugin-registration-path", "/registration", "folder of the kubelet's registrations")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, *address, *endpoint, *folder); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, address, endpoint, folder string) error {
	if endpoint == "" {
		return errors.New("--kubelet-registration-path is needed")
	}
	driver, err := driverName(ctx, address)
	if err != nil {
		return err
	}
	socket := filepath.Join(folder, driver+"-reg.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the socket of an earlier run: %w", err)
	}
	listener, err := net.Listen("unix", socket) // which Stop removes
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	r := &registration{info: &registerapi.PluginInfo{
		Type: registerapi.CSIPlugin, Name: driver, Endpoint: endpoint, SupportedVersions: []string{"1.0.0"},
	}, refused: make(chan string, 1)}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, r)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer server.GracefulStop()
	klog.InfoS("Offering the driver to the kubelet", "driver", driver, "socket", socket)
	select {
	case <-ctx.Done():
		return nil
	case err := <-served:
		return err
	case reason := <-r.refused:
		return fmt.Errorf("the kubelet refused the driver: %s", reason)
	}
}

// driverName waits for the driver: its container may start later.
func driverName(ctx context.Context, address string) (string, error) {
	conn, err := connection.ConnectWithoutMetrics(ctx, address, connection.WithTimeout(0))
	if err != nil {
		return "", fmt.Errorf("connecting to the driver: %w", err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return rpc.GetDriverName(ctx, conn)
}

type registration struct {
	registerapi.UnimplementedRegistrationServer
	info    *registerapi.PluginInfo
	refused chan string
}

func (r *registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return r.info, nil
}

// NotifyRegistrationStatus receives the kubelet's result. The kubelet asks again only
// after a restart of the container, so a refused driver ends the process.
func (r *registration) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	klog.InfoS("The kubelet answered", "registered", s.GetPluginRegistered(), "error", s.GetError())
	if !s.GetPluginRegistered() {
		select {
		case r.refused <- s.GetError():
		default:
		}
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}
