package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-io/fairlead/controllers/nfs/frontend"
	"github.com/fairlead-io/fairlead/internal/config"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The parts are installed apart, so a right in the wrong one is there for nothing.
func TestCSIControllerRightsMatchItsParts(t *testing.T) {
	watch := []string{"get", "list", "watch"}
	rule := func(group string, verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	for file, want := range map[string][]rbacv1.PolicyRule{
		"csi-controller/rbac.yaml": {
			rule("", watch, "services"), rule("discovery.k8s.io", watch, "endpointslices"),
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
		"nfs/controller-rbac.yaml": {
			rule("fairlead.io", append(slices.Clone(watch), "patch"), "nfsservices"), rule("fairlead.io", []string{"patch"}, "nfsservices/status"),
			rule("storage.k8s.io", append(slices.Clone(watch), "patch"), "volumeattachments"), rule("storage.k8s.io", []string{"patch"}, "volumeattachments/status"),
			rule("", watch, "persistentvolumes", "nodes"),
			rule("", []string{"patch"}, "persistentvolumes"),
		},
		"nfs-node-annotations/rbac.yaml": {rule("", []string{"patch"}, "nodes")},
		"ondat/rbac.yaml":                {rule("", watch, "persistentvolumeclaims"), rule("", []string{"delete"}, "endpoints")},
	} {
		must.Equal(t, clusterRole(t, "../components/"+file).Rules, want, "%s", file)
	}
}

// To write a Service is to redirect traffic. Where NFSServices are, a RoleBinding grants it.
func TestServicesAreWrittenOnlyWhereTheRoleIsBound(t *testing.T) {
	bound := map[string][]string{}
	files, err := filepath.Glob("../*/*/*.yaml")
	must.Do(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		must.Do(t, err)
		for document := range bytes.SplitSeq(data, []byte("---\n")) {
			var b rbacv1.ClusterRoleBinding
			if yaml.Unmarshal(document, &b) == nil && strings.HasSuffix(b.Kind, "RoleBinding") && b.RoleRef.Name == frontend.PublisherRole {
				bound[b.Kind] = append(bound[b.Kind], filepath.Base(filepath.Dir(file)))
			}
		}
	}
	// Ondat's claims are in any namespace.
	if want := map[string][]string{"ClusterRoleBinding": {"ondat"}}; !reflect.DeepEqual(bound, want) {
		t.Errorf("bound by %v, want %v", bound, want)
	}
}

// A component's images are its own: those of the base do not reach it.
func TestImagesHaveARegistry(t *testing.T) {
	files, err := filepath.Glob("../*/*/kustomization.yaml")
	must.Do(t, err)
	files, images := append(files, "../base/kustomization.yaml"), 0
	for _, file := range files {
		var k struct {
			Resources []string
			Images    []struct{ Name, NewName string }
		}
		read(t, file, &k)
		for _, resource := range k.Resources {
			if filepath.Ext(resource) != ".yaml" {
				continue
			}
			for _, c := range containers(t, filepath.Join(filepath.Dir(file), resource)) {
				images++
				i := slices.IndexFunc(k.Images, func(m struct{ Name, NewName string }) bool { return m.Name == c.Image })
				if !strings.Contains(c.Image, "/") && (i < 0 || !strings.Contains(k.Images[i].NewName, "/")) {
					t.Errorf("%s: image %s of %s has no registry", file, c.Image, resource)
				}
			}
		}
	}
	must.Check(t, images >= 4, "only %d images were found", images)
}

// Fairlead ends with a configuration that it does not understand.
func TestOverlayConfigurationsAreValid(t *testing.T) {
	for file, want := range map[string]func(*config.Configuration) bool{
		"../base/configuration.yaml": func(c *config.Configuration) bool { return c.Longhorn != nil && c.Ondat == nil },
		"../overlays/ondat/configuration.yaml": func(c *config.Configuration) bool {
			return c.Longhorn == nil && len(c.NFS.Drivers) == 0 && c.NFS.Mode == config.Off && c.Ondat.APISecretPath == secretPath(t)
		},
	} {
		var m corev1.ConfigMap
		read(t, file, &m)
		c, err := config.Parse([]byte(m.Data["configuration.yaml"]))
		must.Check(t, err == nil && want(c), "%s: got %+v, %v", file, c, err)
	}
}

// secretPath is where the component mounts the credentials of Ondat's API.
func secretPath(t *testing.T) string {
	return containers(t, "../components/ondat/controller.yaml")[0].VolumeMounts[0].MountPath
}

// Overlays with a namespace of their own have the base's.
func TestNamespaceIsTheSameEverywhere(t *testing.T) {
	var base, ondat corev1.Namespace
	read(t, "../base/namespace.yaml", &base)
	read(t, "../overlays/ondat/namespace.yaml", &ondat)
	must.Check(t, reflect.DeepEqual(base, ondat), "got %+v, want %+v", ondat, base)
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Do(t, err)
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// containers of the workloads in a file.
func containers(t *testing.T, file string) (list []corev1.Container) {
	t.Helper()
	data, err := os.ReadFile(file)
	must.Do(t, err)
	for document := range bytes.SplitSeq(data, []byte("---\n")) {
		var d appsv1.Deployment // a DaemonSet has its template in the same place
		if yaml.Unmarshal(document, &d) == nil && slices.Contains([]string{"Deployment", "DaemonSet"}, d.Kind) {
			list = append(list, d.Spec.Template.Spec.Containers...)
		}
	}
	return list
}
