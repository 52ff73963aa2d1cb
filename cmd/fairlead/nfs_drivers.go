package main

import (
	"k8s.io/apimachinery/pkg/types"

	config "github.com/fairlead-io/fairlead/api/config/v1alpha1"
)

// nfsDrivers are the NFS CSI drivers that Fairlead serves, with the NFSService of
// volumes that name none.
func nfsDrivers(c *config.Configuration) map[string]types.NamespacedName {
	drivers := map[string]types.NamespacedName{}
	for _, d := range c.NFS.Drivers {
		drivers[d.Name] = d.Service()
	}
	return drivers
}
