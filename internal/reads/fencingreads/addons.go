package fencingreads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/reads/caches"
	"github.com/fairlead-io/fairlead/internal/reads/csiaddons"
	"github.com/fairlead-io/fairlead/internal/reads/lists"
)

// fenceClasses are the NetworkFenceClasses in the order of their names.
type fenceClasses []csiaddons.NetworkFenceClass

func (r *FenceReader) fenceClasses(ctx context.Context) (fenceClasses, error) {
	var classes csiaddons.NetworkFenceClassList
	if err := r.objects.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil && !lists.NotInstalled(err) {
		return nil, fmt.Errorf("listing NetworkFenceClasses: %w", err)
	}
	slices.SortFunc(classes.Items, func(x, y csiaddons.NetworkFenceClass) int { return strings.Compare(x.Name, y.Name) })
	return classes.Items, nil
}

// class is the first NetworkFenceClass, by name, that is for an identity.
func (c fenceClasses) class(id identityKey) string {
	for i := range c {
		if classIdentity(&c[i]) == id {
			return c[i].Name
		}
	}
	return ""
}

// of a driver: the names of its classes.
func (c fenceClasses) of(driver string) (names []string) {
	for i := range c {
		if c[i].Spec.Provisioner == driver {
			names = append(names, c[i].Name)
		}
	}
	return names
}

func (c fenceClasses) identityOf(class string) (identityKey, bool) {
	i := slices.IndexFunc(c, func(c csiaddons.NetworkFenceClass) bool { return c.Name == class })
	if i < 0 {
		return identityKey{}, false
	}
	return classIdentity(&c[i]), true
}

func classIdentity(c *csiaddons.NetworkFenceClass) identityKey {
	return identityKey{c.Spec.Provisioner, c.Spec.Parameters[caches.ClusterIDAttribute]}
}

// connected is the state of a CSIAddonsNode while csi-addons has a connection to its sidecar. In other states the list of
// clients is stale.
const connected = "Connected"

// ReportedInAnnotation of a CSIAddonsNode has the boot of the node, and the address of the plugin pod, since which csi-addons
// has reported the clients. csi-addons does not write the same report twice, so a report of an earlier boot or pod looks
// like a present report. Fairlead deletes the report, writes the annotation, and believes what csi-addons reports after that.
const ReportedInAnnotation = "fairlead.io/reported-in-boot"

// reportedIn is the value of ReportedInAnnotation for a report that counts.
func reportedIn(n *csiaddons.CSIAddonsNode, bootID string) string {
	return strings.TrimSpace(bootID + " " + n.Spec.Driver.EndPoint)
}

// ForgetReport is the patch of the status of a CSIAddonsNode that deletes its report, and MarkReport the patch by which
// csi-addons reports again (v0.14.0: its manager looks again when annotations change). The second patch is based on the
// result of the first, so nothing was reported between them.
func ForgetReport(n *csiaddons.CSIAddonsNode) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": n.ResourceVersion},
		"status":   map[string]any{"networkFenceClientStatus": nil},
	})
	if err != nil {
		return nil, fmt.Errorf("deleting the report in CSIAddonsNode %s: %w", n.Name, err)
	}
	return patch, nil
}

// MarkReport: see ForgetReport.
func MarkReport(n *csiaddons.CSIAddonsNode, bootID string) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": n.ResourceVersion, "annotations": map[string]any{ReportedInAnnotation: reportedIn(n, bootID)},
	}})
	if err != nil {
		return nil, fmt.Errorf("marking CSIAddonsNode %s: %w", n.Name, err)
	}
	return patch, nil
}

// clients are the addresses that csi-addons reports for a driver on the node. Only CSIAddonsNodes in the driver's
// namespace count, owned by a DaemonSet with a pod on the node. A CSIAddonsNode of the driver's controller has another
// owner (v0.14.0: sidecar/internal/csiaddonsnode, getCSIAddonsNode).
func (r *FenceReader) clients(ctx context.Context, s ledgerSources, id identityKey, namespace string) (clientID string, cidrs []string, err error) {
	nodeID, owners := cmp.Or(s.nodeIDs[id.driver], s.view.Facts.Node.Name), owners(s.pods[namespace])
	options := []client.ListOption{client.InNamespace(namespace), client.UnsafeDisableDeepCopy}
	if r.addonsIndexed.Load() {
		options = append(options, client.MatchingFields{driverNodeID: driverID(id.driver, nodeID)})
	}
	var nodes csiaddons.CSIAddonsNodeList
	if err := r.objects.List(ctx, &nodes, options...); err != nil && !lists.NotInstalled(err) {
		return "", nil, fmt.Errorf("listing CSIAddonsNodes of namespace %s: %w", namespace, err)
	}
	slices.SortFunc(nodes.Items, func(x, y csiaddons.CSIAddonsNode) int { return strings.Compare(x.Name, y.Name) })
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Spec.Driver.Name != id.driver || n.Spec.Driver.NodeID != nodeID || n.Status.State != connected ||
			!slices.ContainsFunc(n.OwnerReferences, func(o metav1.OwnerReference) bool { return owners[o.UID] }) {
			continue
		}
		if n.Annotations[ReportedInAnnotation] != reportedIn(n, s.view.Facts.Node.Boot.BootID) {
			if !slices.ContainsFunc(s.view.Unproved, func(o *csiaddons.CSIAddonsNode) bool { return o.Name == n.Name }) {
				s.view.Unproved = append(s.view.Unproved, n.DeepCopy())
			}
			continue
		}
		for _, reported := range n.Status.NetworkFenceClientStatus {
			if of, known := s.addons.identityOf(reported.NetworkFenceClassName); !known || of != id {
				continue
			}
			for _, d := range reported.ClientDetails {
				if clientID == "" {
					clientID = d.ID
				}
				cidrs = append(cidrs, d.CIDRs...)
			}
		}
	}
	return clientID, cidrs, nil
}

// owners are the UIDs of the DaemonSets that own the pods.
func owners(pods []corev1.Pod) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for i := range pods {
		if o := metav1.GetControllerOfNoCopy(&pods[i]); o != nil && o.Kind == "DaemonSet" {
			uids[o.UID] = true
		}
	}
	return uids
}

// facts of the classes.
func (c fenceClasses) facts() (classes []fence.Class) {
	for i := range c {
		id := classIdentity(&c[i])
		classes = append(classes, fence.Class{Name: c[i].Name, Driver: id.driver, ClusterID: id.clusterID})
	}
	return classes
}

// networkFences lists the cluster's NetworkFences, Fairlead's and others', unless a snapshot has them. missing reports
// that the kind does not exist, so that no fence can be requested. Versions of csi-addons
// without NetworkFenceClasses fence by driver and Secret.
func (r *FenceReader) networkFences(ctx context.Context, from client.Reader) (all []fence.NetworkFence, missing bool, err error) {
	if r.snapshot != nil {
		return r.snapshot.fences, r.snapshot.noCSIAddons, nil
	}
	var list csiaddons.NetworkFenceList
	if err := from.List(ctx, &list); lists.NotInstalled(err) {
		return nil, true, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("listing NetworkFences: %w", err)
	}
	fences := make([]fence.NetworkFence, 0, len(list.Items))
	for i := range list.Items {
		fences = append(fences, FenceObject(&list.Items[i]))
	}
	return fences, false, nil
}
