package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/fairlead-io/fairlead/internal/cli"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/csi/controller"
	"github.com/fairlead-io/fairlead/internal/csi/identity"
	"github.com/fairlead-io/fairlead/internal/csi/server"
)

// driverVariable is the placeholder for the driver's name in --csi-endpoint.
const driverVariable = "{driver}"

// csiServer answers the Controller RPCs of one driver. It runs in every replica,
// because the external-attacher sidecar elects its own leader.
type csiServer struct {
	driver, socket string
	publisher      csi.Publisher
	log            *slog.Logger
}

// NeedLeaderElection makes the manager run the server in every replica.
func (*csiServer) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *csiServer) Start(ctx context.Context) error {
	identities := &identity.Server{Driver: s.driver, Version: cli.Version, Controller: true}
	controllers := &controller.Server{Driver: s.driver, Publisher: s.publisher}
	if err := server.Keep(ctx, s.socket, server.Options{Log: s.log}, nil, identities.Register, controllers.Register); err != nil {
		return fmt.Errorf("answering CSI calls of driver %s: %w", s.driver, err)
	}
	return nil
}

// csiSockets returns the path of the socket of each driver with an external
// attacher; none if the endpoint is empty.
func csiSockets(endpoint string, drivers []config.NFSDriver) (map[string]string, error) {
	if endpoint == "" {
		return nil, nil
	}
	sockets, drivenBy := map[string]string{}, map[string]string{}
	for _, d := range drivers {
		if d.Attacher != config.AttacherExternal {
			continue
		}
		path, err := server.ParseEndpoint(strings.ReplaceAll(endpoint, driverVariable, d.Name))
		if err != nil {
			return nil, fmt.Errorf("--csi-endpoint: %w", err)
		}
		if other := drivenBy[path]; other != "" {
			return nil, fmt.Errorf("--csi-endpoint: drivers %s and %s would share the socket %s: write %s into it", other, d.Name, path, driverVariable)
		}
		sockets[d.Name], drivenBy[path] = path, d.Name
	}
	if len(sockets) == 0 {
		return nil, errors.New("--csi-endpoint serves the external attacher, and no driver has one: write nfs.drivers[…].attacher: external into the configuration, or leave the flag out")
	}
	return sockets, nil
}
