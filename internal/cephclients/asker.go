// Package cephclients asks Ceph for the clients of a lost node's volumes, before the node is fenced. Ceph's commands run
// in a server of its own, fairlead ceph-clients. The package is optional: only cmd imports it.
package cephclients

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/fencingreads"
)

// Reporter asks for the clients of one Ceph cluster's volumes.
type Reporter struct {
	ClusterID string
	Live      client.Reader
	Held      *fencingreads.Holdings
	Ask       func(context.Context, cephcli.Request) (cephcli.Answer, error)
}

// Report is a fencing.AskStorage. It asks about volumes that only this node may write to, and shared volumes. A volume
// without an answer is left out, which differs from "no clients".
func (a Reporter) Report(ctx context.Context, f fence.Facts) (report fence.Report, err error) {
	volumes, err := a.volumes(ctx, f)
	if err != nil {
		return report, err
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	request, asked := cephcli.Request{}, map[string]int{}
	for _, v := range volumes {
		question := questionOf(v)
		if err := question.Validate(); err != nil {
			problem("volume %s: %w", v.Name, err)
		} else if v.ClusterID != a.ClusterID {
			problem("volume %s is of Ceph cluster %q, and fencing.cephClients asks %q", v.Name, v.ClusterID, a.ClusterID)
		} else if asked[v.Driver]++; asked[v.Driver] <= cephcli.MaxVolumes/2 {
			request[v.Name] = question
		}
	}
	answer, err := a.Ask(ctx, request)
	problems = append(problems, err)
	for _, v := range volumes {
		if found, answered := answer.Clients[v.Name]; answered && found.Problem != "" {
			problem("volume %s: %s", v.Name, found.Problem)
		} else if answered {
			report.Clients = append(report.Clients, fence.VolumeClients{Volume: v.Held(), Addresses: found.Addresses})
		}
	}
	if answer.Servers.Problem != "" {
		problem("Ceph's servers: %s", answer.Servers.Problem)
	}
	// A server at an address of the node itself is lost with the node.
	servers := slices.DeleteFunc(answer.Servers.Addresses, func(ip netip.Addr) bool { return slices.Contains(f.Node.Addresses, ip) })
	report.Servers = []fence.Server{{Name: "a metadata server or manager of Ceph", Addresses: servers}}
	return report, errors.Join(problems...)
}

// volumes that the node may write to, by name: shared ones, and those that no other machine holds or held when it was lost.
// A later machine of the same name has its own record.
func (a Reporter) volumes(ctx context.Context, f fence.Facts) ([]fence.Volume, error) {
	var volumes []fence.Volume
	held := fence.VolumeNames(slices.Concat(f.Spec.Volumes, f.Holding))
	slices.Sort(held)
	for _, name := range slices.Compact(held) {
		var pv corev1.PersistentVolume
		if err := a.Live.Get(ctx, client.ObjectKey{Name: name}, &pv); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("reading PersistentVolume %s: %w", name, err)
		}
		v := fencingreads.FenceVolume(&pv)
		elsewhere, err := a.Held.HeldElsewhere(v, f.Node.Name, f.Record)
		if err != nil {
			return nil, fmt.Errorf("looking for other holders of volume %s: %w", name, err)
		}
		if !v.ReadOnly() && (v.Shared() || !elsewhere) {
			volumes = append(volumes, v)
		}
	}
	return volumes, nil
}

// questionOf reads the attributes that Ceph's CSI driver writes into a PersistentVolume.
func questionOf(v fence.Volume) cephcli.Volume {
	static := v.Attributes["staticVolume"] == "true"
	if strings.HasSuffix(v.Driver, "cephfs.csi.ceph.com") {
		q := cephcli.Volume{FileSystem: v.Attributes["fsName"], Path: v.Attributes["subvolumePath"]}
		if static || q.Path == "" {
			q.Path = v.Attributes["rootPath"]
		}
		return q
	}
	q := cephcli.Volume{Pool: v.Attributes["pool"], Namespace: v.Attributes["radosNamespace"], Image: v.Attributes["imageName"]}
	if static { // its handle is the image's name
		q.Image = v.Handle
	}
	return q
}
