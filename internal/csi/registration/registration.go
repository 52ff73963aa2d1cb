// Package registration registers a CSI driver with the kubelet: the plugin watcher
// finds a socket in plugins_registry, calls GetInfo, and reports the result
// (k8s.io/kubelet/pkg/apis/pluginregistration/v1). It replaces node-driver-registrar.
package registration

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"sync/atomic"

	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/fairlead-io/fairlead/internal/csi/server"
)

// version of the CSI spec's wire format that the kubelet knows.
const version = "1.0.0"

var name = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)

// CheckDriver refuses names that no CSIDriver may have, or that no file may have.
func CheckDriver(driver string) error {
	if !name.MatchString(driver) {
		return fmt.Errorf("driver name %q: write up to 63 small letters, digits, dashes and dots, such as nfs.fairlead.io", driver)
	}
	return nil
}

// Registration of one driver. It is a registerapi.RegistrationServer.
type Registration struct {
	registerapi.UnimplementedRegistrationServer
	// Driver is the name; Endpoint the path of its socket as the kubelet sees it; Socket that of the registration.
	Driver, Endpoint, Socket string
	Log                      *slog.Logger

	registered atomic.Bool
	refused    chan string
}

// New returns a registration. dir is where the kubelet looks for drivers.
func New(driver, endpoint, dir string, log *slog.Logger) *Registration {
	return &Registration{Driver: driver, Endpoint: endpoint, Socket: filepath.Join(dir, driver+"-reg.sock"), Log: log, refused: make(chan string, 1)}
}

// Registered reports whether the kubelet has taken the driver.
func (r *Registration) Registered() bool { return r.registered.Load() }

// GetInfo returns the driver's name and endpoint.
func (r *Registration) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: registerapi.CSIPlugin, Name: r.Driver, Endpoint: r.Endpoint, SupportedVersions: []string{version}}, nil
}

// NotifyRegistrationStatus receives the kubelet's result.
func (r *Registration) NotifyRegistrationStatus(_ context.Context, s *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	r.registered.Store(s.GetPluginRegistered())
	if s.GetPluginRegistered() {
		r.Log.Info("The kubelet has registered the driver", "driver", r.Driver)
		return &registerapi.RegistrationStatusResponse{}, nil
	}
	select {
	case r.refused <- s.GetError():
	default:
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// Run offers the driver to the kubelet until the context ends. It returns
// an error once the kubelet has refused the driver: the kubelet asks again only when
// the socket is recreated, which a restart of the process does.
func (r *Registration) Run(ctx context.Context, o server.Options) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() {
		served <- server.Serve(ctx, r.Socket, o, nil, func(s grpc.ServiceRegistrar) { registerapi.RegisterRegistrationServer(s, r) })
	}()
	select {
	case err := <-served:
		return err
	case text := <-r.refused:
		stop() // after the kubelet has its answer
		<-served
		return fmt.Errorf("the kubelet refused the driver %s at %s: %s", r.Driver, r.Endpoint, text)
	}
}
