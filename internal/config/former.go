package config

import (
	"encoding/json"
	"errors"
	"fmt"

	"sigs.k8s.io/yaml"
)

// former are the fields that the configuration had before the section longhorn.
type former struct {
	Profiles []struct {
		Name      string          `json:"name"`
		Namespace string          `json:"namespace"`
		Duties    json.RawMessage `json:"duties"`
	} `json:"profiles"`
	Networks           json.RawMessage `json:"networks"`
	MaintenanceWindows json.RawMessage `json:"maintenanceWindows"`
	Workloads          json.RawMessage `json:"workloads"`
}

// errFormer says where the former fields went.
var errFormer = errors.New("profiles, networks, maintenanceWindows and workloads are now part of the section longhorn")

// checkForm refuses the former fields, with the section that replaces them.
func checkForm(document []byte) error {
	var was former
	if json.Unmarshal(document, &was) != nil {
		return nil //nolint:nilerr // the strict decoder says what is wrong
	}
	section := map[string]any{}
	for name, value := range map[string]json.RawMessage{"networks": was.Networks, "maintenanceWindows": was.MaintenanceWindows, "workloads": was.Workloads} {
		if value != nil {
			section[name] = value
		}
	}
	if len(section) == 0 && was.Profiles == nil {
		return nil
	}
	for _, p := range was.Profiles {
		if p.Name == "longhorn" && p.Namespace != "" {
			section["namespace"] = p.Namespace
		}
		if p.Name == "longhorn" && p.Duties != nil {
			section["duties"] = p.Duties
		}
	}
	if len(was.Profiles) == 0 && len(section) == 0 {
		return fmt.Errorf("%w: remove these fields", errFormer)
	}
	text, err := yaml.Marshal(map[string]any{"longhorn": section})
	if err != nil {
		return fmt.Errorf("writing the section longhorn: %w", err)
	}
	return fmt.Errorf("%w: remove these fields, and write\n%s", errFormer, text)
}
