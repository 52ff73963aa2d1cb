package config

import (
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/nfs/volume"
)

// NFS configures the volumes of NFS services.
type NFS struct {
	// Mode: on or off. off is for ondat alone, without drivers. Default on.
	Mode Switch `json:"mode,omitempty"`
	// Drivers are the CSI drivers whose PersistentVolumes Fairlead serves. Default:
	// nfs.fairlead.io.
	Drivers []NFSDriver `json:"drivers,omitempty"`
	// Statd: on if the nodes run rpc.statd, which NFSv3 needs for locks, else off: PersistentVolumes of NFSv3
	// without nolock are refused. See docs/nfs-migration.md. Default off.
	Statd Switch `json:"statd,omitempty"`
}

// NFSDriver is one CSI driver.
type NFSDriver struct {
	// Name of the driver in PersistentVolumes, each once: nfs.fairlead.io, or nfs.lb.csi.storage.gke.io for the GKE
	// NFS LoadBalancer CSI driver. The node plugin needs it in --driver-name, and a CSIDriver object must exist.
	// Another name goes into the webhooks too: see manifests/components/nfs/kustomization.yaml.
	Name string `json:"name"`
	// DefaultService is the NFSService, <namespace>/<name>, of PersistentVolumes without
	// volumeAttributes.service, which are refused otherwise. Default: none.
	DefaultService string `json:"defaultService,omitempty"`
	// NodeAnnotations is the use of the node annotation <driver>/assigned-ip of the GKE driver: off, read (a node
	// keeps the annotated server while the server is alive) or write (also update it; needs defaultService and the
	// component nfs-node-annotations). Default off.
	NodeAnnotations NodeAnnotations `json:"nodeAnnotations,omitempty"`
}

// NodeAnnotations is off, read or write.
type NodeAnnotations string

// Values of NodeAnnotations.
const (
	NodeAnnotationsOff   NodeAnnotations = "off"
	NodeAnnotationsRead  NodeAnnotations = "read"
	NodeAnnotationsWrite NodeAnnotations = "write"
)

// UnmarshalJSON also takes false, since YAML reads a bare off as that.
func (n *NodeAnnotations) UnmarshalJSON(data []byte) error {
	var s Switch
	if err := s.UnmarshalJSON(data); err != nil {
		return err
	}
	*n = NodeAnnotations(s)
	return nil
}

func (n *NFS) setDefaults() {
	or(&n.Mode, On)
	or(&n.Statd, Off)
	if len(n.Drivers) == 0 && n.Mode != Off {
		n.Drivers = []NFSDriver{{Name: csi.DefaultDriver}}
	}
	for i := range n.Drivers {
		or(&n.Drivers[i].NodeAnnotations, NodeAnnotationsOff)
	}
}

// maxDriverName of a CSI driver (CSI spec, GetPluginInfo).
const maxDriverName = 63

func (n NFS) validate(p *problems, path *field.Path) {
	oneOf(p, path.Child("statd"), n.Statd, On, Off)
	oneOf(p, path.Child("mode"), n.Mode, On, Off)
	p.unless(n.Mode != Off || len(n.Drivers) == 0, field.Forbidden(path.Child("drivers"), "volumes are not served with mode: off"))
	earlier := map[string]bool{}
	for i, d := range n.Drivers {
		at := path.Child("drivers").Index(i)
		p.invalid(at.Child("name"), d.Name, validation.IsDNS1123Subdomain(strings.ToLower(d.Name))...)
		p.unless(len(d.Name) <= maxDriverName, field.TooLong(at.Child("name"), d.Name, maxDriverName))
		p.once(at.Child("name"), d.Name, earlier)
		if d.DefaultService != "" {
			_, err := volume.ParseService(d.DefaultService)
			p.parsed(at.Child("defaultService"), d.DefaultService, err)
		}
		oneOf(p, at.Child("nodeAnnotations"), d.NodeAnnotations, NodeAnnotationsOff, NodeAnnotationsRead, NodeAnnotationsWrite)
		p.unless(d.NodeAnnotations != NodeAnnotationsWrite || d.DefaultService != "",
			field.Required(at.Child("defaultService"), "a node has one annotation for a driver: nodeAnnotations: write keeps it for the default service"))
	}
}

// Service is the driver's default service; its name is empty if there is none.
func (d NFSDriver) Service() types.NamespacedName {
	service, err := volume.ParseService(d.DefaultService)
	if err != nil {
		return types.NamespacedName{}
	}
	return service
}

// DefaultServices are the drivers that Fairlead serves, each with the NFSService of volumes
// that name none.
func (n NFS) DefaultServices() map[string]types.NamespacedName {
	services := map[string]types.NamespacedName{}
	for _, d := range n.Drivers {
		services[d.Name] = d.Service()
	}
	return services
}
