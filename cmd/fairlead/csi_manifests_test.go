//go:build linux

package main

import (
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// If nothing listens on the probed port, the kubelet restarts the node plugin forever.
func TestNodePluginListensWhereItIsProbed(t *testing.T) {
	data, err := os.ReadFile("../../manifests/components/nfs/node.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict(data, &set); err != nil {
		t.Fatal(err)
	}
	container := set.Spec.Template.Spec.Containers[0]
	cmd := csiNodeCommand()
	if err := cmd.ParseFlags(container.Args[1:]); err != nil {
		t.Fatal(err)
	}
	listen := cmd.Flag("health-listen").Value.String()
	for name, probe := range map[string]string{
		"readiness": fmt.Sprintf("%s:%s", container.ReadinessProbe.HTTPGet.Host, container.ReadinessProbe.HTTPGet.Port.String()),
		"liveness":  fmt.Sprintf("%s:%s", container.LivenessProbe.HTTPGet.Host, container.LivenessProbe.HTTPGet.Port.String()),
	} {
		if probe != listen {
			t.Errorf("the %s probe asks %s, and the node plugin listens on %s", name, probe, listen)
		}
	}
}
