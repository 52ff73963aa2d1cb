package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	controlplane "github.com/fairlead-io/fairlead/e2e/controlplane"
)

// State is what others need to know in order to use the control plane. It is
// written to state.json as soon as it is known, and to the file "ready" once
// everything works.
type State struct {
	Kubeconfig    string                `json:"kubeconfig"`
	APIServerURL  string                `json:"apiServerURL"`
	CAFile        string                `json:"caFile"`
	BinDir        string                `json:"binDir"`
	Kubectl       string                `json:"kubectl"`
	LogDir        string                `json:"logDir"`
	ClusterDomain string                `json:"clusterDomain"`
	ServiceCIDRs  []string              `json:"serviceCIDRs"`
	Nodes         []string              `json:"nodes"`
	Ports         Ports                 `json:"ports"`
	Pids          map[string]int        `json:"pids"`
	Versions      controlplane.Versions `json:"versions"`
	// ReadyAfterSeconds is set in the file "ready" only.
	ReadyAfterSeconds float64 `json:"readyAfterSeconds,omitempty"`
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

// forget removes what tells others about the control plane.
func (l layout) forget() error {
	for _, path := range []string{l.ready(), l.state()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the state of an earlier run: %w", err)
		}
	}
	return nil
}
