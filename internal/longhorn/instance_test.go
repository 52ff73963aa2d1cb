package longhorn

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestVolumeOfInstance(t *testing.T) {
	for instance, want := range map[string]string{
		"pvc-1-e-0": "pvc-1", "pvc-1-ef-0": "pvc-1", "pvc-1-r-1a2b3c4d": "pvc-1", "data-r-e-0": "data-r", "x": "", "": "",
	} {
		must.Equal(t, VolumeOfInstance(instance), want, "%q", instance)
	}
}
