package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// State is what others need to know in order to use the control plane. It is written to the file "ready" once
// everything works.
type State struct {
	Kubeconfig    string         `json:"kubeconfig"`
	Kubectl       string         `json:"kubectl"`
	LogDir        string         `json:"logDir"`
	ClusterDomain string         `json:"clusterDomain"`
	Nodes         []string       `json:"nodes"`
	Kubernetes    string         `json:"kubernetes"`
	Pids          map[string]int `json:"pids"`
}

// write replaces a file as a whole: who sees it sees all of it.
func (s State) write(path string) error {
	content, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the state: %w", err)
	}
	temporary := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".tmp")
	if err := os.WriteFile(temporary, append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	if err := os.Rename(temporary, path); err != nil {
		return fmt.Errorf("putting the state in place: %w", err)
	}
	return nil
}
