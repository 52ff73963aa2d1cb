package webhook

import (
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
	"github.com/fairlead-io/fairlead/webhook/registration"
)

// entry is an installed entry.
type entry struct {
	admissionregistrationv1.ValidatingWebhook
	mutating bool
}

func entries() []entry {
	var all []entry
	for _, e := range allEntries() {
		all = append(all, entry{e.Webhook(), e.IsMutating()})
	}
	return all
}

// deletionsEntry is the only validating one for pods.
const deletionsEntry = "instance-manager-deletions.longhorn.fairlead.io"

func TestEveryEntryIsSafe(t *testing.T) {
	names := map[string]bool{}
	for _, e := range entries() {
		must.Check(t, !names[e.Name], "%s exists twice", e.Name)
		names[e.Name] = true
		must.Check(t, e.SideEffects != nil && *e.SideEffects == admissionregistrationv1.SideEffectClassNone, "%s has side effects", e.Name)
		must.Check(t, slices.Equal(e.AdmissionReviewVersions, []string{"v1"}), "%s takes reviews of %v", e.Name, e.AdmissionReviewVersions)
		must.Check(t, e.TimeoutSeconds != nil && *e.TimeoutSeconds >= 1 && *e.TimeoutSeconds <= 10, "%s may take %v s", e.Name, e.TimeoutSeconds)
		failsClosed := e.FailurePolicy == nil || *e.FailurePolicy == admissionregistrationv1.Fail
		if failsClosed != slices.Contains([]string{"settings.longhorn.fairlead.io", "attachments.fairlead.io", "nodefences.fairlead.io"}, e.Name) {
			t.Errorf("%s fails closed: %v", e.Name, failsClosed)
		}
		// Longhorn never removes the labels of its instance managers: it finds them by these labels.
		if !e.mutating && e.ObjectSelector != nil && e.Name != deletionsEntry {
			t.Errorf("%s selects by labels that its users may change", e.Name)
		}
	}
}

// ofTheCluster are the kinds without a namespace that entries may be for.
var ofTheCluster = []string{"persistentvolumes", "storageclasses", "volumeattachments", "nodes", "nodefences"}

func (e entry) namespaced() bool {
	return slices.ContainsFunc(e.Rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return !slices.Contains(ofTheCluster, r.Resources[0])
	})
}

func TestNoEntryIsSentAllOfAKind(t *testing.T) {
	for _, e := range entries() {
		if e.namespaced() && (e.NamespaceSelector == nil || len(e.NamespaceSelector.MatchLabels)+len(e.NamespaceSelector.MatchExpressions) == 0) {
			t.Errorf("%s is for every namespace", e.Name)
		}
		narrowed := e.ObjectSelector != nil && len(e.ObjectSelector.MatchLabels)+len(e.ObjectSelector.MatchExpressions) > 0 || len(e.MatchConditions) > 0
		must.Check(t, narrowed, "%s is for every object of its kind", e.Name)
		for _, r := range e.Rules {
			ofCluster := len(r.Resources) == 1 && slices.Contains(ofTheCluster, r.Resources[0])
			if r.Scope == nil || (*r.Scope == admissionregistrationv1.ClusterScope) != ofCluster || *r.Scope == admissionregistrationv1.AllScopes {
				t.Errorf("%s is for objects of the cluster", e.Name)
			}
			for _, word := range slices.Concat(r.APIGroups, r.APIVersions, r.Resources) {
				must.Check(t, !strings.Contains(word, "*"), "%s has a wildcard: %v", e.Name, r.Rule)
			}
			// Nodes: only the out-of-service taint, and the deletion of a node in use. Fairlead is never in the way.
			if slices.Contains(r.Resources, "nodes") && (*e.FailurePolicy != admissionregistrationv1.Ignore || !slices.Equal(r.Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Update, admissionregistrationv1.Delete}) ||
				!strings.Contains(e.MatchConditions[0].Expression, fence.OutOfServiceTaint)) || slices.Contains(r.Resources, "namespaces") {
				t.Errorf("%s: %v may keep a cluster from booting", e.Name, r.Resources)
			}
			// Attachments: never their deletion, which makes Kubernetes attach twice, and only those of protected drivers.
			if slices.Contains(r.Resources, "volumeattachments") && (!slices.Equal(r.Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Create}) || !strings.Contains(e.MatchConditions[0].Expression, "rbd.csi.ceph.com")) {
				t.Errorf("%s: %v of %v", e.Name, r.Operations, e.MatchConditions)
			}
			// Claims: only those with an annotation of Fairlead's, and never in the way (longhorn#12578).
			if slices.Contains(r.Resources, "persistentvolumeclaims") &&
				(*e.FailurePolicy != admissionregistrationv1.Ignore || len(e.MatchConditions) != 1 || e.MatchConditions[0].Expression != annotationChanged) {
				t.Errorf("%s may keep a cluster from booting: %+v", e.Name, e.MatchConditions)
			}
			// Volumes: only those of a driver, or with an annotation of Fairlead's, and never in the way.
			if slices.Contains(r.Resources, "persistentvolumes") && (*e.FailurePolicy != admissionregistrationv1.Ignore ||
				!strings.Contains(e.MatchConditions[0].Expression, "'nfs.fairlead.io'") && e.MatchConditions[0].Expression != annotationChanged) {
				t.Errorf("%s may keep a cluster from booting: %+v", e.Name, e.MatchConditions)
			}
			pods := slices.Contains(r.Resources, "pods") && slices.Contains(r.APIGroups, "")
			if pods && (e.ObjectSelector == nil || len(e.ObjectSelector.MatchLabels) == 0 || !e.mutating && e.Name != deletionsEntry) {
				t.Errorf("%s is for every pod of its namespace", e.Name)
			}
		}
	}
}

// Invariant 11: Fairlead's own pods never pass through its own webhooks.
func TestFairleadIsOutsideEveryEntry(t *testing.T) {
	for _, e := range entries() {
		if !e.namespaced() {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(e.NamespaceSelector)
		must.Do(t, err)
		must.Check(t, !selector.Matches(k8slabels.Set{corev1.LabelMetadataName: registration.Namespace}), "%s is for %s", e.Name, registration.Namespace)
		// Networks are often kept in kube-system; nothing else there is Fairlead's business.
		if !strings.HasPrefix(e.Name, "networks.") && selector.Matches(k8slabels.Set{corev1.LabelMetadataName: "kube-system"}) {
			t.Errorf("%s is for kube-system", e.Name)
		}
	}
}

func TestDangerZoneSettingsAreChecked(t *testing.T) {
	judged := settingsOf(longhorn.DefaultNames()).Conditions[0].Expression
	for _, d := range catalog.DangerZone() {
		must.Check(t, strings.Contains(judged, "'"+string(d.Name)+"'"), "%s is not in %s", d.Name, judged)
	}
}

// Regression: while Fairlead was down, all longhorn-managers crashed after an upgrade, since at their start they
// create settings with values of older settings.
func TestStorageSystemMayCreateItsSettings(t *testing.T) {
	p := longhorn.DefaultNames()
	conditions := settingsOf(p).Conditions
	i := slices.IndexFunc(conditions, func(c admissionregistrationv1.MatchCondition) bool {
		return c.Name == "not-created-by-the-storage-system"
	})
	must.True(t, i >= 0 && p.ServiceAccount != "", "%q is not exempt in %+v", p.ServiceAccount, conditions)
	for _, part := range []string{
		"request.operation == 'CREATE'",                // not what its UI changes
		"request.resource.group != 'fairlead.io'",      // not Fairlead's own settings
		"':" + p.ServiceAccount + "'",                  // no other account
		"'system:serviceaccount:' + request.namespace", // nor an account of that name elsewhere
	} {
		must.Check(t, strings.Contains(conditions[i].Expression, part), "%q is not in %s", part, conditions[i].Expression)
	}
}

// requestTimeout is the API server's default for one request, webhooks included.
const requestTimeout = time.Minute

func TestSettleTimeIsLongerThanRequestTimeout(t *testing.T) {
	must.True(t, rollout.DefaultSettle >= requestTimeout, "settle time %s, admission and write take up to %s", rollout.DefaultSettle, requestTimeout)
}

func TestInstanceManagerDeletionsEntry(t *testing.T) {
	entries := allEntries()
	w := entries[slices.IndexFunc(entries, func(e registration.Entry) bool { return e.Name() == deletionsEntry })].Webhook()
	must.Check(t, *w.FailurePolicy == admissionregistrationv1.Ignore && *w.TimeoutSeconds <= 3, "policy %s, timeout %d s", *w.FailurePolicy, *w.TimeoutSeconds)
	if len(w.Rules) != 1 || len(w.Rules[0].Operations) != 1 || w.Rules[0].Operations[0] != admissionregistrationv1.Delete || strings.Join(w.Rules[0].Resources, " ") != "pods" {
		t.Errorf("rules %+v", w.Rules) // evictions are pods/eviction
	}
	if w.NamespaceSelector.MatchLabels[corev1.LabelMetadataName] != "longhorn-system" || w.ObjectSelector.MatchLabels["longhorn.io/component"] != "instance-manager" {
		t.Errorf("namespace %v, objects %v", w.NamespaceSelector, w.ObjectSelector)
	}
	if want := "request.userInfo.username == 'system:serviceaccount:' + request.namespace + ':longhorn-service-account'"; w.MatchConditions[0].Expression != want {
		t.Errorf("got  %s\nwant %s", w.MatchConditions[0].Expression, want)
	}
}

func TestStraySettingsEntryIsForUserNamespaces(t *testing.T) {
	entries := allEntries()
	stray := slices.IndexFunc(entries, func(e registration.Entry) bool { return e.Path == registration.StraySettingsPath })
	selector, err := metav1.LabelSelectorAsSelector(entries[stray].Namespaces)
	must.Do(t, err)
	for namespace, want := range map[string]bool{"default": true, registration.Namespace: false, "kube-system": false, "longhorn-system": false} {
		if got := selector.Matches(k8slabels.Set{corev1.LabelMetadataName: namespace}); got != want {
			t.Errorf("%s: seen %v", namespace, got)
		}
	}
}
