package webhook

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/fence/profiles"
	"github.com/fairlead-io/fairlead/internal/settings/catalog"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/internal/storage"
)

// entry is what mutating and validating webhooks have in common.
type entry struct {
	name                       string
	mutating                   bool
	client                     admissionregistrationv1.WebhookClientConfig
	rules                      []admissionregistrationv1.RuleWithOperations
	failurePolicy              *admissionregistrationv1.FailurePolicyType
	sideEffects                *admissionregistrationv1.SideEffectClass
	timeout                    *int32
	versions                   []string
	namespaceSelector, objects *metav1.LabelSelector
	conditions                 []admissionregistrationv1.MatchCondition
}

func entries() []entry {
	mutating, validating := Registration(storage.Profiles())
	fencingMutating, fencingValidating := FencingRegistration(profiles.All())
	nfsMutating, nfsValidating := NFSRegistration(NFSDrivers())
	mutating.Webhooks = slices.Concat(mutating.Webhooks, fencingMutating.Webhooks, nfsMutating.Webhooks)
	validating.Webhooks = slices.Concat(validating.Webhooks, fencingValidating.Webhooks, nfsValidating.Webhooks)
	var all []entry
	for _, w := range mutating.Webhooks {
		all = append(all, entry{w.Name, true, w.ClientConfig, w.Rules, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions})
	}
	for _, w := range validating.Webhooks {
		all = append(all, entry{w.Name, false, w.ClientConfig, w.Rules, w.FailurePolicy, w.SideEffects, w.TimeoutSeconds, w.AdmissionReviewVersions, w.NamespaceSelector, w.ObjectSelector, w.MatchConditions})
	}
	return all
}

// deletionsEntry is the only validating one for pods.
const deletionsEntry = "instance-manager-deletions.longhorn.fairlead.io"

func TestEveryEntryIsSafe(t *testing.T) {
	names := map[string]bool{}
	for _, e := range entries() {
		if names[e.name] {
			t.Errorf("%s is there twice", e.name)
		}
		names[e.name] = true
		if e.sideEffects == nil || *e.sideEffects != admissionregistrationv1.SideEffectClassNone {
			t.Errorf("%s has side effects", e.name)
		}
		if !slices.Equal(e.versions, []string{"v1"}) {
			t.Errorf("%s takes reviews of %v", e.name, e.versions)
		}
		if e.timeout == nil || *e.timeout < 1 || *e.timeout > 10 {
			t.Errorf("%s may take %v s", e.name, e.timeout)
		}
		failsClosed := e.failurePolicy == nil || *e.failurePolicy == admissionregistrationv1.Fail
		if failsClosed != slices.Contains([]string{"settings.longhorn.fairlead.io", "attachments.fairlead.io", "nodefences.fairlead.io"}, e.name) {
			t.Errorf("%s fails closed: %v", e.name, failsClosed)
		}
		// Longhorn does not take the labels off its instance managers: it would not find them any more.
		if !e.mutating && e.objects != nil && e.name != deletionsEntry {
			t.Errorf("%s looks at labels that whoever is judged may change", e.name)
		}
	}
}

// ofTheCluster are the kinds without a namespace that entries may be for.
var ofTheCluster = []string{"persistentvolumes", "storageclasses", "volumeattachments", "nodes", "nodefences"}

func (e entry) namespaced() bool {
	return slices.ContainsFunc(e.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return !slices.Contains(ofTheCluster, r.Resources[0])
	})
}

func TestNoEntryIsSentAllOfAKind(t *testing.T) {
	for _, e := range entries() {
		if e.namespaced() && (e.namespaceSelector == nil || len(e.namespaceSelector.MatchLabels)+len(e.namespaceSelector.MatchExpressions) == 0) {
			t.Errorf("%s is for every namespace", e.name)
		}
		narrowed := e.objects != nil && len(e.objects.MatchLabels)+len(e.objects.MatchExpressions) > 0 || len(e.conditions) > 0
		if !narrowed {
			t.Errorf("%s is for every object of its kind", e.name)
		}
		for _, r := range e.rules {
			ofCluster := len(r.Resources) == 1 && slices.Contains(ofTheCluster, r.Resources[0])
			if r.Scope == nil || (*r.Scope == admissionregistrationv1.ClusterScope) != ofCluster || *r.Scope == admissionregistrationv1.AllScopes {
				t.Errorf("%s is for objects of the cluster", e.name)
			}
			for _, word := range slices.Concat(r.APIGroups, r.APIVersions, r.Resources) {
				if strings.Contains(word, "*") {
					t.Errorf("%s has a wildcard: %v", e.name, r.Rule)
				}
			}
			// Nodes: only what the out-of-service taint does to them, and never in the way.
			if slices.Contains(r.Resources, "nodes") && (*e.failurePolicy != admissionregistrationv1.Ignore || !slices.Equal(r.Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Update}) ||
				!strings.Contains(e.conditions[0].Expression, fence.OutOfServiceTaint)) || slices.Contains(r.Resources, "namespaces") {
				t.Errorf("%s: %v may keep a cluster from booting", e.name, r.Resources)
			}
			// Attachments: never their deletion, which makes Kubernetes attach twice, and only those of protected drivers.
			if slices.Contains(r.Resources, "volumeattachments") && (!slices.Equal(r.Operations, []admissionregistrationv1.OperationType{admissionregistrationv1.Create}) || !strings.Contains(e.conditions[0].Expression, "rbd.csi.ceph.com")) {
				t.Errorf("%s: %v of %v", e.name, r.Operations, e.conditions)
			}
			// Claims: only those with an annotation of Fairlead's, and never in the way (longhorn#12578).
			if slices.Contains(r.Resources, "persistentvolumeclaims") &&
				(*e.failurePolicy != admissionregistrationv1.Ignore || len(e.conditions) != 1 || e.conditions[0].Expression != annotationChanged) {
				t.Errorf("%s may keep a cluster from booting: %+v", e.name, e.conditions)
			}
			// Volumes: only those of a driver, or with an annotation of Fairlead's, and never in the way.
			if slices.Contains(r.Resources, "persistentvolumes") && (*e.failurePolicy != admissionregistrationv1.Ignore ||
				!strings.Contains(e.conditions[0].Expression, "'nfs.fairlead.io'") && e.conditions[0].Expression != annotationChanged) {
				t.Errorf("%s may keep a cluster from booting: %+v", e.name, e.conditions)
			}
			pods := slices.Contains(r.Resources, "pods") && slices.Contains(r.APIGroups, "")
			asked := e.namespaceSelector != nil && e.namespaceSelector.MatchLabels[fence.OptInLabel] == fence.OptedIn && *e.failurePolicy == admissionregistrationv1.Ignore
			if pods && !asked && (e.objects == nil || len(e.objects.MatchLabels) == 0 || !e.mutating && e.name != deletionsEntry) {
				t.Errorf("%s is for every pod of its namespace", e.name)
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
		selector, err := metav1.LabelSelectorAsSelector(e.namespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		if selector.Matches(k8slabels.Set{corev1.LabelMetadataName: Namespace}) {
			t.Errorf("%s is for %s", e.name, Namespace)
		}
		// Networks are often kept in kube-system; nothing else there is Fairlead's business.
		if !strings.HasPrefix(e.name, "networks.") && selector.Matches(k8slabels.Set{corev1.LabelMetadataName: "kube-system"}) {
			t.Errorf("%s is for kube-system", e.name)
		}
	}
}

func TestEveryEntryIsServedAndNothingElse(t *testing.T) {
	reviews := reviewsOfEveryPath()
	h := newRig(t, fakeClient(t, onNetwork()...))
	for _, e := range entries() {
		service := e.client.Service
		if service == nil || service.Namespace != Namespace || service.Name != ServiceName || service.Path == nil {
			t.Fatalf("%s calls %+v", e.name, e.client)
		}
		review, ok := reviews[*service.Path]
		if !ok {
			t.Errorf("%s calls %s, which no test knows", e.name, *service.Path)
			continue
		}
		if status, body := h.post(*service.Path, review); status != http.StatusOK {
			t.Errorf("%s: %s answers %d %s", e.name, *service.Path, status, body)
		}
		delete(reviews, *service.Path)
	}
	for path := range reviews {
		t.Errorf("%s is served and not registered", path)
	}
}

func TestEverySettingOfTheDangerZoneIsJudged(t *testing.T) {
	_, validating := Registration(storage.Profiles())
	judged := validating.Webhooks[0].MatchConditions[0].Expression
	for _, d := range catalog.DangerZone() {
		if !strings.Contains(judged, "'"+string(d.Name)+"'") {
			t.Errorf("%s is not in %s", d.Name, judged)
		}
	}
}

// Regression: all longhorn-managers crashed again and again after an upgrade while
// Fairlead was down, since they create settings with values of older ones as they start.
func TestTheStorageSystemMayCreateItsSettingsAsItStarts(t *testing.T) {
	for _, p := range storage.Profiles() {
		conditions := validateSettings(p).MatchConditions
		i := slices.IndexFunc(conditions, func(c admissionregistrationv1.MatchCondition) bool {
			return c.Name == "not-created-by-the-storage-system"
		})
		if i < 0 || p.ServiceAccount == "" {
			t.Fatalf("%s: %q is not exempt in %+v", p.Name, p.ServiceAccount, conditions)
		}
		for _, part := range []string{
			"request.operation == 'CREATE'",                // not what its UI changes
			"request.resource.group != 'fairlead.io'",      // not Fairlead's own settings
			"':" + p.ServiceAccount + "'",                  // nobody else
			"'system:serviceaccount:' + request.namespace", // nor an account of that name elsewhere
		} {
			if !strings.Contains(conditions[i].Expression, part) {
				t.Errorf("%s: %q is not in %s", p.Name, part, conditions[i].Expression)
			}
		}
	}
}

// requestTimeout is the API server's default for one request, webhooks included.
const requestTimeout = time.Minute

func TestServicesSettleNoSoonerThanTheirAdmissionEnds(t *testing.T) {
	if longest := requestTimeout; rollout.DefaultSettle < longest {
		t.Fatalf("settle time %s, admission and write take up to %s", rollout.DefaultSettle, longest)
	}
}
