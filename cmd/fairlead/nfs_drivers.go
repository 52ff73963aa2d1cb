package main

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-io/fairlead/internal/cluster/lists"
	"github.com/fairlead-io/fairlead/internal/cluster/nfs"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/webhook"
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

// webhookNFS is what the rules of NFS services need.
func webhookNFS(c *config.Configuration, lists *lists.Live) *webhook.NFS {
	return &webhook.NFS{Live: nfs.NewNFSReader(lists, nfsDrivers(c))}
}
