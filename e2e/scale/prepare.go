package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/api/v1alpha1"
	"github.com/fairlead-io/fairlead/e2e/sandbox"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/reads"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
)

// unlimit removes the rate limit of the administrator's client, which creates thousands of objects unmeasured.
func (s *scenario) unlimit() error {
	config := rest.CopyConfig(s.Config)
	config.QPS = -1
	c, err := client.NewWithWatch(config, client.Options{Scheme: s.Client.Scheme()})
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	s.Config, s.Client = config, c
	return nil
}

// network is large enough for every node and every volume.
const network = "kube-system/scale-net"

const networkText = `apiVersion: k8s.cni.cncf.io/v1
kind: NetworkAttachmentDefinition
metadata: {name: scale-net, namespace: kube-system}
spec:
  config: |
    {"cniVersion": "1.0.0", "name": "scale-net", "type": "macvlan", "master": "eth1", "mode": "bridge",
     "ipam": {"type": "host-local", "dataDir": "/srv/fairlead-addresses", "ranges": [[{"subnet": "172.16.0.0/16"}], [{"subnet": "fd00:16::/64"}]]}}
`

// maxUnavailable is how many CSI plugin pods, of a hundred, may be away at a
// time. With Longhorn's default, one pod, it would be hours.
const maxUnavailable = 5

func (s *scenario) seed(ctx context.Context) error {
	if err := s.SeedLonghorn(ctx); err != nil {
		return err
	}
	if _, err := s.Kubectl(ctx, networkText, "create", "-f", "-"); err != nil {
		return err
	}
	return s.patch(ctx, "daemonset", longhorn.DefaultNames().ClientDaemonSet,
		fmt.Sprintf(`{"spec":{"updateStrategy":{"rollingUpdate":{"maxUnavailable":"%d%%"}}}}`, maxUnavailable))
}

func (s *scenario) install(ctx context.Context) error {
	if err := s.Install(ctx, sandbox.CertManager); err != nil {
		return err
	}
	return s.RunFairlead(ctx, 1, 1)
}

// applyNetwork makes mounts die with their CSI plugin pod, and Fairlead restart the workloads.
func (s *scenario) applyNetwork(ctx context.Context) error {
	for _, set := range []struct {
		group string
		name  catalog.Name
		value string
	}{
		{"settings.longhorn.io", catalog.AutoDeletePod, "true"},
		{"settings.fairlead.io", catalog.AutoDeletePodBlacklist, ""},
		{"settings.fairlead.io", catalog.EndpointNetworkForRWX, network},
	} {
		if err := s.patch(ctx, set.group, string(set.name), fmt.Sprintf(`{"value":%q}`, set.value)); err != nil {
			return err
		}
	}
	return s.report.until(ctx, func() (string, bool, error) {
		var object v1alpha1.NetworkRollout
		if err := s.Client.Get(ctx, reads.RolloutKey(longhorn.DefaultNames()), &object); err != nil {
			return "", false, err
		}
		status := object.Status
		done := strings.HasPrefix(status.Desired, network) && status.Phase == string(rollout.PhaseApplied)
		return fmt.Sprintf("%s: %s", status.Phase, status.Message), done, nil
	})
}

func (s *scenario) patch(ctx context.Context, resource, name, patch string) error {
	_, err := s.Kubectl(ctx, "", "-n="+longhorn.DefaultNames().Namespace, "patch", resource, name, "--type=merge", "-p="+patch)
	return err
}

// reviewSetting measures a dry run, which the API server has the webhook review. The median of five counts.
func (s *scenario) reviewSetting(ctx context.Context) error {
	setting := &longhorn.Setting{}
	setting.Namespace, setting.Name = longhorn.DefaultNames().Namespace, string(catalog.PriorityClass)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"value":"system-node-critical"}`))
	var took []time.Duration
	for range 5 {
		began := time.Now()
		if err := s.Client.Patch(ctx, setting.DeepCopy(), patch, client.DryRunAll); err != nil {
			return err
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	s.review = took[2]
	return nil
}
