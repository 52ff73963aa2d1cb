package identity

import (
	"context"
	"testing"
)

func TestDriverIsNamedAndReady(t *testing.T) {
	ctx := context.Background()
	for want, s := range []*Server{{Driver: "d", Version: "v1"}, {Driver: "d", Version: "v1", Controller: true}} {
		info, err := s.GetPluginInfo(ctx, nil)
		if err != nil || info.GetName() != "d" || info.GetVendorVersion() != "v1" {
			t.Errorf("%v, %v", info, err)
		}
		if got, err := s.GetPluginCapabilities(ctx, nil); err != nil || len(got.GetCapabilities()) != want {
			t.Errorf("%v, %v", got, err)
		}
		if ready, err := s.Probe(ctx, nil); err != nil || !ready.GetReady().GetValue() {
			t.Errorf("%v, %v", ready, err)
		}
	}
}
