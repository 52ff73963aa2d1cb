package config

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
	"github.com/fairlead-io/fairlead/internal/storage/builtin"
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
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, fmt.Errorf("reading YAML: %w", err)
	}
	if c.APIVersion != APIVersion || c.Kind != Kind {
		return nil, fmt.Errorf("got apiVersion %q, kind %q: want apiVersion: %s, kind: %s", c.APIVersion, c.Kind, APIVersion, Kind)
	}
	c.setDefaults()
	if problems := c.validate(); len(problems) > 0 {
		return nil, problems.ToAggregate()
	}
	return &c, nil
}

func (c *Configuration) setDefaults() {
	or(&c.ClusterDomain, "cluster.local")
	or(&c.Networks.Missing, Warn)
	or(&c.Networks.InUse, Warn)
	or(&c.Networks.Gate, rollout.GateCluster)
	if c.Networks.Settle.Duration == 0 {
		c.Networks.Settle.Duration = rollout.DefaultSettle
	}
	if c.Workloads.MaxPercent == 0 {
		c.Workloads.MaxPercent = DefaultMaxPercent
	}
	other := len(c.Fencing.Profiles) > 0 || len(c.NFS.Drivers) > 0 || c.Ondat != nil
	c.Fencing.setDefaults()
	c.NFS.setDefaults()
	c.Ondat.setDefaults()
	if len(c.Profiles) == 0 && !other {
		c.Profiles = []Profile{{Name: builtin.Profiles()[0].Name}}
	}
	permitted, _ := c.Networks.perVolume()
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

func or[T ~string](target *T, value T) {
	if *target == "" {
		*target = value
	}
}

// builtInProfile finds a built-in profile by name.
func builtInProfile(name string) (storage.Profile, bool) {
	i := slices.IndexFunc(builtin.Profiles(), func(p storage.Profile) bool { return p.Name == name })
	if i < 0 {
		return storage.Profile{}, false
	}
	return builtin.Profiles()[i], true
}

// Storage returns the built-in profile, in the configured namespace.
func (p Profile) Storage() storage.Profile {
	profile, _ := builtInProfile(p.Name)
	profile.Namespace, profile.VolumeNetworks = p.Namespace, p.perVolume
	return profile
}

func (n Networks) perVolume() (permitted []storage.Network, problems field.ErrorList) {
	for i, text := range n.PerVolume {
		path := field.NewPath("networks", "perVolume").Index(i)
		network, err := storage.ParseNetwork(text)
		switch {
		case err != nil:
			problems = append(problems, field.Invalid(path, text, err.Error()))
		case network.IsZero():
			problems = append(problems, field.Required(path, "name a network"))
		default:
			permitted = append(permitted, network)
		}
	}
	return permitted, problems
}

func (c *Configuration) validate() field.ErrorList {
	var problems field.ErrorList
	for _, p := range validation.IsDNS1123Subdomain(strings.TrimSuffix(c.ClusterDomain, ".")) {
		problems = append(problems, field.Invalid(field.NewPath("clusterDomain"), c.ClusterDomain, p))
	}
	problems = append(problems, oneOf(field.NewPath("networks", "missing"), c.Networks.Missing, Warn, Refuse)...)
	problems = append(problems, oneOf(field.NewPath("networks", "inUse"), c.Networks.InUse, Warn, Refuse)...)
	if c.Networks.Settle.Duration < 0 {
		problems = append(problems, field.Invalid(field.NewPath("networks", "settle"), c.Networks.Settle.Duration.String(), "must not be negative"))
	}
	if percent := c.Workloads.MaxPercent; percent < 1 || percent > 100 {
		problems = append(problems, field.Invalid(field.NewPath("workloads", "maxPercent"), percent, "must be from 1 to 100"))
	}
	problems = append(problems, oneOf(field.NewPath("networks", "gate"), c.Networks.Gate, rollout.GateCluster, rollout.GateNode)...)
	_, found := c.Networks.perVolume()
	problems = append(problems, found...)
	for i, w := range c.MaintenanceWindows {
		_, found := w.window(field.NewPath("maintenanceWindows").Index(i))
		problems = append(problems, found...)
	}
	problems = append(problems, c.Fencing.validate(field.NewPath("fencing"))...)
	problems = append(problems, c.NFS.validate(field.NewPath("nfs"))...)
	problems = append(problems, c.Ondat.validate(field.NewPath("ondat"))...)
	seen := map[string]bool{}
	for i, p := range c.Profiles {
		path := field.NewPath("profiles").Index(i)
		if _, ok := builtInProfile(p.Name); !ok {
			var names []string
			for _, b := range builtin.Profiles() {
				names = append(names, b.Name)
			}
			problems = append(problems, field.NotSupported(path.Child("name"), p.Name, names))
		}
		if seen[p.Name] {
			problems = append(problems, field.Duplicate(path.Child("name"), p.Name))
		}
		seen[p.Name] = true
		for _, message := range validation.IsDNS1123Label(p.Namespace) {
			problems = append(problems, field.Invalid(path.Child("namespace"), p.Namespace, message))
		}
		duties := path.Child("duties")
		if p.Duties.Settings == Apply && (p.Duties.Pods == Off || p.Duties.Services == Off) {
			problems = append(problems, field.Invalid(duties.Child("settings"), p.Duties.Settings,
				"settings: apply needs pods: on and services: on; switch them on, or write settings: guard"))
		}
		problems = append(problems, oneOf(duties.Child("settings"), p.Duties.Settings, Apply, Guard, Off)...)
		problems = append(problems, oneOf(duties.Child("pods"), p.Duties.Pods, On, Off)...)
		problems = append(problems, oneOf(duties.Child("services"), p.Duties.Services, On, Off)...)
		problems = append(problems, oneOf(duties.Child("networks"), p.Duties.Networks, On, Off)...)
		problems = append(problems, oneOf(duties.Child("volumeNetworks"), p.Duties.VolumeNetworks, On, Off)...)
		problems = append(problems, oneOf(duties.Child("endpoints"), p.Duties.Endpoints, On, Slices, Off)...)
		problems = append(problems, oneOf(duties.Child("workloads"), p.Duties.Workloads, On, Off)...)
		problems = append(problems, oneOf(duties.Child("remount"), p.Duties.Remount, On, Off)...)
		problems = append(problems, p.Duties.needRecord(duties)...)
	}
	return problems
}

// needRecord refuses duties that need the settings duty while it is off.
func (d Duties) needRecord(path *field.Path) field.ErrorList {
	var problems field.ErrorList
	needs := func(name string, on bool, what Switch) {
		if on && d.Settings == Off {
			problems = append(problems, field.Invalid(path.Child(name), what, "needs settings: apply or guard, which keeps the record of networks"))
		}
	}
	needs("endpoints", d.Endpoints != Off, d.Endpoints)
	needs("workloads", d.Workloads != Off, d.Workloads)
	needs("remount", d.Remount != Off, d.Remount)
	return problems
}

func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}
