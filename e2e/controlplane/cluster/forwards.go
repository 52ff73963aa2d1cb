package cluster

import (
	"fmt"
	"regexp"
	"strconv"
)

// Forward is a port of a namespace's simulated pods that kubectl port-forward reaches: on this machine, where
// what stands for the pods listens.
type Forward struct {
	Namespace string
	PodPort   int
	LocalPort int
}

var forwardPattern = regexp.MustCompile(`^([a-z0-9-]+):(\d+)=(\d+)$`)

// ParseForward reads NAMESPACE:PODPORT=LOCALPORT.
func ParseForward(text string) (Forward, error) {
	match := forwardPattern.FindStringSubmatch(text)
	if match == nil {
		return Forward{}, fmt.Errorf("--forward %q is not NAMESPACE:PODPORT=LOCALPORT", text)
	}
	f := Forward{Namespace: match[1]}
	var err error
	if f.PodPort, err = strconv.Atoi(match[2]); err != nil {
		return Forward{}, fmt.Errorf("--forward %q: %w", text, err)
	}
	if f.LocalPort, err = strconv.Atoi(match[3]); err != nil {
		return Forward{}, fmt.Errorf("--forward %q: %w", text, err)
	}
	return f, nil
}

// configuration is what kwok reads.
func (f Forward) configuration() string {
	return fmt.Sprintf(`
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata:
  name: %s-%d
spec:
  selector: {matchNamespaces: [%s]}
  forwards:
    - ports: [%d]
      target: {address: 127.0.0.1, port: %d}
`, f.Namespace, f.PodPort, f.Namespace, f.PodPort, f.LocalPort)
}
