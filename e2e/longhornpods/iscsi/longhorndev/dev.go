package longhorndev

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/longhorn/go-iscsi-helper/types"
)

const (
	SocketDirectory = "/var/run"
	DevPath         = "/dev/longhorn/"

	socketTimeout = 30 * time.Second
)

var errUnsupported = errors.New("not supported by the device that replaces iSCSI in tests")

// DeviceService is what the engine calls.
type DeviceService interface {
	GetFrontend() string
	SetFrontend(frontend string) error
	UnsetFrontendCheck() error
	UnsetFrontend()
	GetEndpoint() string
	Enabled() bool

	InitDevice() error
	Start() error
	Shutdown() error
	PrepareUpgrade() error
	FinishUpgrade() error
	Expand(size int64) error
}

type LonghornDeviceCreator struct{}

// NewDevice does not use the timeouts: they are iSCSI's.
func (LonghornDeviceCreator) NewDevice(name string, size int64, frontend string, _, _, _ int64) (DeviceService, error) {
	if name == "" || size == 0 {
		return nil, errors.New("a device needs a name and a size")
	}
	d := &device{name: name, size: size}
	return d, d.SetFrontend(frontend)
}

type device struct {
	name string
	size int64

	mu       sync.Mutex
	frontend string
	enabled  bool
	loop     *loop
}

func (d *device) path() string { return filepath.Join(DevPath, d.name) }

func (d *device) socket() string {
	return filepath.Join(SocketDirectory, "longhorn-"+d.name+".sock")
}

// InitDevice removes what a killed engine left.
func (d *device) InitDevice() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.enabled || d.frontend == "" {
		return nil
	}
	d.enabled = true
	return removeStale(d.name, d.path())
}

func (d *device) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.frontend != types.FrontendTGTBlockDev {
		return fmt.Errorf("frontend %q is %w", d.frontend, errUnsupported)
	}
	engine, err := dial(d.socket(), socketTimeout)
	if err != nil {
		return fmt.Errorf("connecting to the engine of volume %s: %w", d.name, err)
	}
	if d.loop, err = attach(d.name, d.path(), d.size, engine); err != nil {
		engine.close()
		return fmt.Errorf("making the device of volume %s: %w", d.name, err)
	}
	return nil
}

func (d *device) Shutdown() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loop != nil {
		if err := d.loop.detach(d.path()); err != nil {
			return fmt.Errorf("removing the device of volume %s: %w", d.name, err)
		}
	}
	d.loop, d.enabled = nil, false
	return nil
}

// A live upgrade hands a device to another process: tgtd can, the engine that serves this device can't.
func (d *device) PrepareUpgrade() error { return fmt.Errorf("a live upgrade is %w", errUnsupported) }
func (d *device) FinishUpgrade() error  { return fmt.Errorf("a live upgrade is %w", errUnsupported) }

func (d *device) Expand(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if size < d.size {
		return fmt.Errorf("device %s can't shrink from %d to %d bytes", d.name, d.size, size)
	}
	if d.loop != nil && size > d.size {
		if err := d.loop.resize(size); err != nil {
			return fmt.Errorf("expanding the device of volume %s: %w", d.name, err)
		}
	}
	d.size = size
	return nil
}

func (d *device) SetFrontend(frontend string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case frontend != types.FrontendTGTBlockDev && frontend != types.FrontendTGTISCSI && frontend != "":
		return fmt.Errorf("unknown frontend %q", frontend)
	case d.frontend != "" && d.frontend != frontend:
		return fmt.Errorf("frontend %q is up and can't become %q", d.frontend, frontend)
	case d.frontend != "" && !d.enabled:
		return fmt.Errorf("frontend %q is set and has not been shut down", d.frontend)
	}
	d.frontend = frontend
	return nil
}

func (d *device) UnsetFrontendCheck() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.enabled {
		d.frontend = ""
	}
	return nil
}

func (d *device) UnsetFrontend() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.frontend = ""
}

func (d *device) Enabled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.enabled
}

func (d *device) GetEndpoint() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.loop == nil {
		return ""
	}
	return d.path()
}

func (d *device) GetFrontend() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.frontend
}
