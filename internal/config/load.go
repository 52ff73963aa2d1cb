package config

import (
	"cmp"
	"errors"
	"fmt"
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
	"github.com/fairlead-io/fairlead/internal/longhorn/builtin"
	"github.com/fairlead-io/fairlead/internal/multus"
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
	c.setDefaults()
	if problems := c.validate(); len(problems) > 0 || malformed != nil {
		return nil, errors.Join(malformed, problems.ToAggregate())
	}
	return &c, nil
}

func (c *Configuration) setDefaults() {
	or(&c.ClusterDomain, "cluster.local")
	or(&c.Networks.Missing, settings.Warn)
	or(&c.Networks.InUse, settings.Warn)
	or(&c.Networks.Gate, rollout.GateCluster)
	or(&c.Networks.Settle.Duration, rollout.DefaultSettle)
	or(&c.Workloads.MaxPercent, DefaultMaxPercent)
	other := len(c.Fencing.Profiles) > 0 || len(c.NFS.Drivers) > 0 || c.Ondat != nil
	c.Fencing.setDefaults()
	c.NFS.setDefaults()
	c.Ondat.setDefaults()
	if len(c.Profiles) == 0 && !other {
		c.Profiles = []Profile{{Name: builtin.Profiles()[0].Name}}
	}
	permitted := c.Networks.perVolume(&problems{})
	for i := range c.Profiles {
		p := &c.Profiles[i]
		p.perVolume = permitted
		if builtIn, ok := builtInProfile(p.Name); ok {
			or(&p.Namespace, builtIn.Namespace)
		}
		or(&p.Duties.Settings, Apply)
		or(&p.Duties.Pods, On)
		or(&p.Duties.Services, On)
		or(&p.Duties.Networks, On)
		or(&p.Duties.VolumeNetworks, On)
		// The duties below need the record of networks, which the settings duty keeps.
		recorded := On
		if p.Duties.Settings == Off {
			recorded = Off
		}
		or(&p.Duties.Endpoints, recorded)
		or(&p.Duties.Workloads, recorded)
		or(&p.Duties.Remount, Off)
	}
}

// or sets a default.
func or[T comparable](target *T, value T) {
	*target = cmp.Or(*target, value)
}

// builtInProfile finds a built-in profile by name.
func builtInProfile(name string) (longhorn.Names, bool) {
	i := slices.IndexFunc(builtin.Profiles(), func(p longhorn.Names) bool { return p.Name == name })
	if i < 0 {
		return longhorn.Names{}, false
	}
	return builtin.Profiles()[i], true
}

// Storage returns the built-in profile, in the configured namespace.
func (p Profile) Storage() longhorn.Names {
	profile, _ := builtInProfile(p.Name)
	profile.Namespace, profile.VolumeNetworks = p.Namespace, p.perVolume
	return profile
}

// perVolume are the parsed networks of PerVolume.
func (n Networks) perVolume(p *problems) (permitted []multus.Network) {
	for i, text := range n.PerVolume {
		path := field.NewPath("networks", "perVolume").Index(i)
		network, err := multus.ParseNetwork(text)
		p.parsed(path, text, err)
		p.unless(err != nil || !network.IsZero(), field.Required(path, "name a network"))
		if !network.IsZero() {
			permitted = append(permitted, network)
		}
	}
	return permitted
}

func (c *Configuration) validate() field.ErrorList {
	p, networks := &problems{}, field.NewPath("networks")
	p.invalid(field.NewPath("clusterDomain"), c.ClusterDomain, validation.IsDNS1123Subdomain(strings.TrimSuffix(c.ClusterDomain, "."))...)
	oneOf(p, networks.Child("missing"), c.Networks.Missing, settings.Warn, settings.Refuse)
	oneOf(p, networks.Child("inUse"), c.Networks.InUse, settings.Warn, settings.Refuse)
	p.atLeast(networks.Child("settle"), c.Networks.Settle, 0)
	p.number(field.NewPath("workloads", "maxPercent"), c.Workloads.MaxPercent, 1, 100, "must be from 1 to 100")
	oneOf(p, networks.Child("gate"), c.Networks.Gate, rollout.GateCluster, rollout.GateNode)
	c.Networks.perVolume(p)
	for i, w := range c.MaintenanceWindows {
		w.window(p, field.NewPath("maintenanceWindows").Index(i))
	}
	c.Fencing.validate(p, field.NewPath("fencing"))
	c.NFS.validate(p, field.NewPath("nfs"))
	c.Ondat.validate(p, field.NewPath("ondat"))
	earlier := map[string]bool{}
	for i, profile := range c.Profiles {
		profile.validate(p, field.NewPath("profiles").Index(i), earlier)
	}
	return p.list
}

func (profile Profile) validate(p *problems, path *field.Path, earlier map[string]bool) {
	var names []string
	for _, b := range builtin.Profiles() {
		names = append(names, b.Name)
	}
	oneOf(p, path.Child("name"), profile.Name, names...)
	p.once(path.Child("name"), profile.Name, earlier)
	if profile.Namespace != "" || slices.Contains(names, profile.Name) { // an unknown profile has no default
		p.namespace(path.Child("namespace"), profile.Namespace)
	}
	d, path := profile.Duties, path.Child("duties")
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
