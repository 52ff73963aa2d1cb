package rwx

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/testkit/fixedruns"
)

// TestMain makes 1000 runs of each property test: two servers with one address are rare.
func TestMain(m *testing.M) { fixedruns.Main(m, 1000, 30) }

var (
	netA = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "a"}, Interface: "lhnet1"}
	netB = multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "b"}, Interface: "lhnet2"}
)
