package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/settings"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// Load reads and checks a configuration file; an empty path gives the defaults.
func Load(path string) (*Configuration, error) {
	if path == "" {
		return Parse([]byte("apiVersion: " + APIVersion + "\nkind: " + Kind + "\n"))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	c, err := Parse(inConfigMap(data))
	if err != nil {
		return nil, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// inConfigMap is the configuration in a ConfigMap, as manifests have it; else the data themselves.
func inConfigMap(data []byte) []byte {
	var object struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if yaml.Unmarshal(data, &object) == nil && object.Kind == "ConfigMap" {
		return []byte(object.Data["configuration.yaml"])
	}
	return data
}

// Parse reads a configuration, sets defaults and returns all problems at once.
func Parse(data []byte) (*Configuration, error) {
	var c Configuration
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if err := checkForm(document); err != nil {
		return nil, err
	}
	// All unknown fields at once, with their paths. Values are read by the types: YAML's 42 may be a name.
	unknown, _ := json.UnmarshalStrict(document, &Configuration{})
	malformed := errors.Join(unknown...)
	if malformed != nil {
		malformed = fmt.Errorf("reading YAML: %w", malformed)
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return nil, errors.Join(malformed, fmt.Errorf("reading YAML: %w", err))
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return nil, errors.Join(malformed, fmt.Errorf("got apiVersion %q, kind %q: want apiVersion: %s, kind: %s", c.APIVersion, c.Kind, APIVersion, Kind))
	}
	if c.Longhorn == nil && hasSection(document, "longhorn") {
		c.Longhorn = &Longhorn{} // longhorn: without a value
	}
	c.setDefaults()
	if problems := c.validate(); len(problems) > 0 || malformed != nil {
		return nil, errors.Join(malformed, problems.ToAggregate())
	}
	return &c, nil
}

// hasSection reports whether the document has the field, perhaps without a value.
func hasSection(document []byte, name string) bool {
	var fields map[string]any
	_ = json.UnmarshalCaseSensitivePreserveInts(document, &fields) // has been read before
	_, has := fields[name]
	return has
}

func (c *Configuration) setDefaults() {
	or(&c.ClusterDomain, "cluster.local")
	other := len(c.Fencing.Profiles) > 0 || len(c.NFS.Drivers) > 0 || c.Ondat != nil
	c.Fencing.setDefaults()
	c.NFS.setDefaults()
	c.Ondat.setDefaults()
	if c.Longhorn == nil && !other {
		c.Longhorn = &Longhorn{}
	}
	c.Longhorn.setDefaults()
}

func (l *Longhorn) setDefaults() {
	if l == nil {
		return
	}
	or(&l.Namespace, longhorn.DefaultNames().Namespace)
	or(&l.Networks.Missing, settings.Warn)
	or(&l.Networks.InUse, settings.Warn)
	or(&l.Networks.Gate, rollout.GateCluster)
	or(&l.Networks.Settle.Duration, rollout.DefaultSettle)
	or(&l.Workloads.MaxPercent, DefaultMaxPercent)
	l.permitted = rwx.Permitted{Networks: l.Networks.perVolume(&problems{}, nil), Addresses: l.Networks.fixedAddresses(&problems{}, nil)}
	d := &l.Duties
	or(&d.Settings, Apply)
	or(&d.Pods, On)
	or(&d.Services, On)
	or(&d.Networks, On)
	or(&d.VolumeNetworks, On)
	// The duties below need the record of networks, which the settings duty keeps.
	recorded := On
	if d.Settings == Off {
		recorded = Off
	}
	or(&d.Endpoints, recorded)
	or(&d.Workloads, recorded)
	or(&d.Remount, Off)
}

// or sets a default.
func or[T comparable](target *T, value T) {
	*target = cmp.Or(*target, value)
}

// perVolume are the parsed networks of PerVolume.
func (n Networks) perVolume(p *problems, path *field.Path) (permitted []multus.Network) {
	for i, text := range n.PerVolume {
		path := path.Child("perVolume").Index(i)
		network, err := multus.ParseNetwork(text)
		p.parsed(path, text, err)
		p.unless(err != nil || !network.IsZero(), field.Required(path, "name a network"))
		if !network.IsZero() {
			permitted = append(permitted, network)
		}
	}
	return permitted
}

// fixedAddresses are the parsed grants of FixedAddresses.
func (n Networks) fixedAddresses(p *problems, path *field.Path) (grants []rwx.AddressGrant) {
	for i, f := range n.FixedAddresses {
		path := path.Child("fixedAddresses").Index(i)
		network, err := multus.ParseNetwork(f.Network)
		p.parsed(path.Child("network"), f.Network, err)
		grant := rwx.AddressGrant{Network: network, Namespaces: f.Namespaces}
		for j, namespace := range f.Namespaces {
			p.namespace(path.Child("namespaces").Index(j), namespace)
		}
		for j, text := range f.Ranges {
			prefix, err := netip.ParsePrefix(text)
			if err == nil && prefix != prefix.Masked() {
				err = fmt.Errorf("has host bits: write %s", prefix.Masked())
			}
			p.parsed(path.Child("ranges").Index(j), text, err)
			grant.Ranges = append(grant.Ranges, prefix)
		}
		for j, text := range f.MACPrefixes {
			prefix, err := multus.ParseMACPrefix(text)
			p.parsed(path.Child("macPrefixes").Index(j), text, err)
			grant.MACPrefixes = append(grant.MACPrefixes, prefix)
		}
		p.unless(len(f.Ranges)+len(f.MACPrefixes) > 0, field.Required(path.Child("ranges"), "give ranges, macPrefixes or both"))
		grants = append(grants, grant)
	}
	return grants
}

func (c *Configuration) validate() field.ErrorList {
	p := &problems{}
	p.invalid(field.NewPath("clusterDomain"), c.ClusterDomain, validation.IsDNS1123Subdomain(strings.TrimSuffix(c.ClusterDomain, "."))...)
	c.Longhorn.validate(p, field.NewPath("longhorn"))
	c.Fencing.validate(p, field.NewPath("fencing"))
	c.NFS.validate(p, field.NewPath("nfs"))
	c.Ondat.validate(p, field.NewPath("ondat"))
	return p.list
}

func (l *Longhorn) validate(p *problems, path *field.Path) {
	if l == nil {
		return
	}
	p.namespace(path.Child("namespace"), l.Namespace)
	l.Duties.validate(p, path.Child("duties"))
	networks := path.Child("networks")
	oneOf(p, networks.Child("missing"), l.Networks.Missing, settings.Warn, settings.Refuse)
	oneOf(p, networks.Child("inUse"), l.Networks.InUse, settings.Warn, settings.Refuse)
	p.atLeast(networks.Child("settle"), l.Networks.Settle, 0)
	oneOf(p, networks.Child("gate"), l.Networks.Gate, rollout.GateCluster, rollout.GateNode)
	l.Networks.perVolume(p, networks)
	l.Networks.fixedAddresses(p, networks)
	for i, w := range l.MaintenanceWindows {
		w.window(p, path.Child("maintenanceWindows").Index(i))
	}
	p.number(path.Child("workloads", "maxPercent"), l.Workloads.MaxPercent, 1, 100, "must be from 1 to 100")
}

func (d Duties) validate(p *problems, path *field.Path) {
	p.unless(d.Settings != Apply || d.Pods != Off && d.Services != Off, field.Invalid(path.Child("settings"), d.Settings,
		"settings: apply needs pods: on and services: on; switch them on, or write settings: guard"))
	for _, duty := range []struct {
		name    string
		value   Switch
		allowed []Switch
		// needsRecord: the duty needs the record of networks, which the settings duty keeps.
		needsRecord bool
	}{
		{"settings", d.Settings, []Switch{Apply, Guard, Off}, false},
		{"pods", d.Pods, []Switch{On, Off}, false},
		{"services", d.Services, []Switch{On, Off}, false},
		{"networks", d.Networks, []Switch{On, Off}, false},
		{"volumeNetworks", d.VolumeNetworks, []Switch{On, Off}, false},
		{"endpoints", d.Endpoints, []Switch{On, Slices, Off}, true},
		{"workloads", d.Workloads, []Switch{On, Off}, true},
		{"remount", d.Remount, []Switch{On, Off}, true},
	} {
		oneOf(p, path.Child(duty.name), duty.value, duty.allowed...)
		p.unless(!duty.needsRecord || duty.value == Off || d.Settings != Off, field.Invalid(path.Child(duty.name), duty.value, "needs settings: apply or guard, which keeps the record of networks"))
	}
}

// problems of a configuration, all of them.
type problems struct{ list field.ErrorList }

// unless adds a problem if the configuration is not ok.
func (p *problems) unless(ok bool, problem *field.Error) {
	if !ok {
		p.list = append(p.list, problem)
	}
}

// invalid adds a problem with a value for each message.
func (p *problems) invalid(path *field.Path, value any, messages ...string) {
	for _, message := range messages {
		p.unless(false, field.Invalid(path, value, message))
	}
}

func (p *problems) number(path *field.Path, value, least, most int, message string) {
	p.unless(least <= value && value <= most, field.Invalid(path, value, message))
}

func (p *problems) atLeast(path *field.Path, d metav1.Duration, least time.Duration) {
	message := "must not be negative"
	if least > 0 {
		message = "must be at least " + least.String()
	}
	p.unless(d.Duration >= least, field.Invalid(path, d.Duration.String(), message))
}

// once refuses a name that an earlier entry of the list has.
func (p *problems) once(path *field.Path, name string, earlier map[string]bool) {
	p.unless(!earlier[name], field.Duplicate(path, name))
	earlier[name] = true
}

func (p *problems) namespace(path *field.Path, name string) {
	p.invalid(path, name, validation.IsDNS1123Label(name)...)
}

func oneOf[T ~string](p *problems, path *field.Path, value T, allowed ...T) {
	p.unless(slices.Contains(allowed, value), field.NotSupported(path, value, allowed))
}

// parsed adds the error of a text that can't be parsed.
func (p *problems) parsed(path *field.Path, text string, err error) {
	if err != nil {
		p.invalid(path, text, err.Error())
	}
}
