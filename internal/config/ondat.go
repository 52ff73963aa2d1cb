package config

import (
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat/rest"
)

// Ondat is a control plane whose shared volumes Fairlead publishes. The fields have the names of flags of the
// StorageOS api-manager, as its design has them.
type Ondat struct {
	// APIEndpoint of the control plane, with or without scheme and port: storageos, https://storageos:5705. Without
	// https, the password crosses the network in clear text. Default storageos.
	APIEndpoint string `json:"apiEndpoint,omitempty"`
	// APISecretPath is the folder with the files username and password, read at each login.
	// Default /etc/storageos/secrets/api.
	APISecretPath string `json:"apiSecretPath,omitempty"`
	// CAFile has the PEM certificates of the authorities for an https endpoint. Default: the system's.
	CAFile string `json:"caFile,omitempty"`
	// APIPollInterval is the time between two lists of the volumes. Default 5s.
	APIPollInterval metav1.Duration `json:"apiPollInterval,omitzero"`
	// ServiceName: PVC or PV. A new Service has the name of the PersistentVolumeClaim or of the PersistentVolume.
	// Default PVC.
	ServiceName ondat.Naming `json:"serviceName,omitempty"`
}

func (o *Ondat) setDefaults() {
	if o == nil {
		return
	}
	or(&o.APIEndpoint, "storageos")
	or(&o.APISecretPath, "/etc/storageos/secrets/api")
	or(&o.APIPollInterval.Duration, 5*time.Second)
	or(&o.ServiceName, ondat.ByPVC)
}

func (o *Ondat) validate(p *problems, path *field.Path) {
	if o == nil {
		return
	}
	oneOf(p, path.Child("serviceName"), o.ServiceName, ondat.ByPVC, ondat.ByPV)
	_, err := rest.ParseEndpoint(o.APIEndpoint)
	p.parsed(path.Child("apiEndpoint"), "(hidden)", err) // it may hold a password
	for _, file := range []struct{ name, path string }{{"apiSecretPath", o.APISecretPath}, {"caFile", o.CAFile}} {
		p.unless(file.path == "" || filepath.IsAbs(file.path), field.Invalid(path.Child(file.name), file.path, "must be an absolute path"))
	}
	p.atLeast(path.Child("apiPollInterval"), o.APIPollInterval, time.Second)
}
