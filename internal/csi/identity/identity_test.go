package identity

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestDriverIsNamedAndReady(t *testing.T) {
	s := &Server{Driver: "d", Version: "v1"}
	info, err := s.GetPluginInfo(t.Context(), nil)
	must.Do(t, err)
	must.True(t, info.GetName() == "d" && info.GetVendorVersion() == "v1", "got %v", info)
	capabilities, err := s.GetPluginCapabilities(t.Context(), nil)
	must.Do(t, err)
	must.Equal(t, len(capabilities.GetCapabilities()), 0, "capabilities")
	ready, err := s.Probe(t.Context(), nil)
	must.Do(t, err)
	must.Equal(t, ready.GetReady().GetValue(), true, "ready")
}
