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
// StorageOS api-manager, as its design has them (docs/nfs-ondat.md lists the exceptions).
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
	// CacheExpiryInterval is the time after which an unchanged volume is checked again. A
	// deleted Service is recreated at once. Default 1m.
	CacheExpiryInterval metav1.Duration `json:"cacheExpiryInterval,omitzero"`
	// APIRefreshInterval is the age of a token at which Fairlead logs in again, at most two thirds of its lifetime.
	// Default 1m.
	APIRefreshInterval metav1.Duration `json:"apiRefreshInterval,omitzero"`
	// APIRetryInterval is the pause after a failed poll; it grows sixfold. Default 5s.
	APIRetryInterval metav1.Duration `json:"apiRetryInterval,omitzero"`
	// APITimeout of one request. Default 10s.
	APITimeout metav1.Duration `json:"apiTimeout,omitzero"`
	// K8sCreatePollInterval is the first pause before a failed write is tried again; it doubles up to 1m. Default
	// 1s.
	K8sCreatePollInterval metav1.Duration `json:"k8sCreatePollInterval,omitzero"`
	// K8sCreateWaitDuration limits one run of the work on one volume. Default 20s.
	K8sCreateWaitDuration metav1.Duration `json:"k8sCreateWaitDuration,omitzero"`
	// ServiceName: PVC or PV. A new Service has the name of the PersistentVolumeClaim or of the PersistentVolume.
	// Default PVC.
	ServiceName ondat.Naming `json:"serviceName,omitempty"`
	// Concurrency is how many volumes are published at a time, 1 to 1000. Default 16.
	Concurrency int `json:"concurrency,omitempty"`
}

func (o *Ondat) setDefaults() {
	if o == nil {
		return
	}
	or(&o.APIEndpoint, "storageos")
	or(&o.APISecretPath, "/etc/storageos/secrets/api")
	or(&o.APIPollInterval.Duration, 5*time.Second)
	or(&o.CacheExpiryInterval.Duration, time.Minute)
	or(&o.APIRefreshInterval.Duration, rest.DefaultRefresh)
	or(&o.APIRetryInterval.Duration, 5*time.Second)
	or(&o.APITimeout.Duration, rest.DefaultTimeout)
	or(&o.K8sCreatePollInterval.Duration, time.Second)
	or(&o.K8sCreateWaitDuration.Duration, 20*time.Second)
	or(&o.ServiceName, ondat.ByPVC)
	or(&o.Concurrency, 16)
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
	for _, d := range []struct {
		name  string
		value metav1.Duration
		least time.Duration
	}{
		{"apiPollInterval", o.APIPollInterval, time.Second},
		{"cacheExpiryInterval", o.CacheExpiryInterval, time.Second},
		{"apiRefreshInterval", o.APIRefreshInterval, time.Second},
		{"apiRetryInterval", o.APIRetryInterval, time.Second},
		{"apiTimeout", o.APITimeout, time.Second},
		{"k8sCreatePollInterval", o.K8sCreatePollInterval, 10 * time.Millisecond},
		{"k8sCreateWaitDuration", o.K8sCreateWaitDuration, time.Second},
	} {
		p.atLeast(path.Child(d.name), d.value, d.least)
	}
	p.number(path.Child("concurrency"), o.Concurrency, 1, 1000, "must be from 1 to 1000")
}
