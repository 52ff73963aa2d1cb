package main

import (
	"k8s.io/apimachinery/pkg/types"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// nfsDrivers are the NFS CSI drivers that Fairlead serves, with the NFSService of
// volumes that name none.
func nfsDrivers(*config.Configuration) map[string]types.NamespacedName {
	return map[string]types.NamespacedName{csi.DefaultDriver: {}, volume.GKEDriver: {}}
}
