package beside

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/e2e/eventually"
	"github.com/fairlead-io/fairlead/internal/longhorn"
)

// Settings of the networks, and the networks of the sandbox. StorageNetworkForRWX stands for the setting of the version, whatever
// its name: with "true", RWX volumes use the storage network, with "false" none.
const (
	StorageNetwork       = "storage-network"
	StorageNetworkForRWX = "storage-network-for-rwx-volume-enabled"

	NetworkA = "kube-system/storage-net"
	NetworkB = "kube-system/backup-net"
)

// On is a network with the interface by which share managers and CSI plugins of the version are on it.
func (c *Cluster) On(network string) string { return named(network, c.Version.RWXInterface) }

// OnStorage is a network with the interface by which instance managers are on it.
func OnStorage(network string) string { return named(network, "lhnet1") }

func named(network, name string) string {
	if network == "" {
		return ""
	}
	return network + "@" + name
}

// settingName is the name of a setting in this version.
func (c *Cluster) settingName(name string) string {
	if name == StorageNetworkForRWX {
		return c.Version.RWXNetwork
	}
	return name
}

// Set changes a setting of Longhorn, as a user does.
func (c *Cluster) Set(ctx context.Context, name, value string) error {
	if name == StorageNetworkForRWX && !c.Version.HasSwitch() {
		network := ""
		if value == "true" {
			var err error
			if network, err = c.Text(ctx, "Setting", StorageNetwork, "value"); err != nil {
				return err
			}
		}
		value = c.Version.RWXValue(network)
	}
	name = c.settingName(name)
	setting := &longhorn.Setting{}
	setting.Namespace, setting.Name = Namespace, name
	if err := c.Client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"value":%q}`, value))); err != nil {
		return fmt.Errorf("setting %s to %q: %w", name, value, err)
	}
	return nil
}

// Retry has Longhorn sync a setting again: after three tries within 50 ms it waits for the next write
// of the setting, or for an hour (v1.7.2, controller/setting_controller.go). The setting stays as it is.
func (c *Cluster) Retry(ctx context.Context, name string) error {
	setting := &longhorn.Setting{}
	setting.Namespace, setting.Name = Namespace, c.settingName(name)
	for _, value := range []string{`"true"`, "null"} {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"test.fairlead.io/retry":%s}}}`, value)
		if err := c.Client.Patch(ctx, setting, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("having Longhorn sync setting %s: %w", name, err)
		}
	}
	return nil
}

// Applied tells whether Longhorn's setting says that it is applied.
func (c *Cluster) Applied(ctx context.Context, name string) (bool, error) {
	var setting longhorn.Setting
	if err := c.Client.Get(ctx, key(c.settingName(name)), &setting); err != nil {
		return false, fmt.Errorf("reading setting %s: %w", name, err)
	}
	return setting.Status.Applied, nil
}

// WaitApplied waits until Longhorn's setting says that it is applied, or not.
func (c *Cluster) WaitApplied(ctx context.Context, name string, applied bool, within time.Duration) error {
	return eventually.Until(ctx, fmt.Sprintf("setting %s to have applied: %v", name, applied), within, func() error {
		is, err := c.Applied(ctx, name)
		if err != nil {
			return err
		}
		if is != applied {
			return fmt.Errorf("it has %v", is)
		}
		return nil
	})
}
