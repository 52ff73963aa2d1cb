//go:build linux

package main

import (
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// If nothing listens on the probed port, the kubelet restarts the node plugin forever.
func TestNodePluginListensWhereItIsProbed(t *testing.T) {
	data, err := os.ReadFile("../../manifests/components/nfs/node.yaml")
	must.Do(t, err)
	var set appsv1.DaemonSet
	must.Do(t, yaml.UnmarshalStrict(data, &set))
	container := set.Spec.Template.Spec.Containers[0]
	cmd := csiNodeCommand()
	must.Do(t, cmd.ParseFlags(container.Args[1:]))
	listen := cmd.Flag("health-listen").Value.String()
	for name, probe := range map[string]string{
		"readiness": fmt.Sprintf("%s:%s", container.ReadinessProbe.HTTPGet.Host, container.ReadinessProbe.HTTPGet.Port.String()),
		"liveness":  fmt.Sprintf("%s:%s", container.LivenessProbe.HTTPGet.Host, container.LivenessProbe.HTTPGet.Port.String()),
	} {
		must.Check(t, probe == listen, "the %s probe asks %s, and the node plugin listens on %s", name, probe, listen)
	}
}
