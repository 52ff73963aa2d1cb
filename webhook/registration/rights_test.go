package registration

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/utils/ptr"

	"github.com/fairlead-io/fairlead/internal/csi"
	"github.com/fairlead-io/fairlead/internal/fence"
	"github.com/fairlead-io/fairlead/internal/nfs/ondat"
	"github.com/fairlead-io/fairlead/internal/nfs/publish"
	"github.com/fairlead-io/fairlead/internal/rwx"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// write of an object; before is nil for a creation, after is nil for a deletion.
type write struct{ before, after runtime.Object }

func TestControllerChangesOnlyItsOwnPartsOfPods(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", ResourceVersion: "1", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"}},
		Spec: corev1.PodSpec{
			Containers:      []corev1.Container{{Name: "web", Image: "nginx"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "x"}},
		},
	}
	rows := changes(pod, map[string]change[corev1.Pod]{
		"nothing":            {true, func(*corev1.Pod) {}},
		"namespace recorded": {true, func(p *corev1.Pod) { p.Annotations[rwx.NamespaceAnnotation] = "x" }},
		"managed fields": {true, func(p *corev1.Pod) {
			p.ManagedFields, p.Generation, p.ResourceVersion = []metav1.ManagedFieldsEntry{{Manager: "x"}}, 2, "2"
		}},
		"gate removed":        {false, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }},
		"label added":         {false, func(p *corev1.Pod) { p.Labels["x"] = "y" }},
		"label changed":       {false, func(p *corev1.Pod) { p.Labels["app"] = "db" }},
		"labels removed":      {false, func(p *corev1.Pod) { p.Labels = nil }},
		"annotation added":    {false, func(p *corev1.Pod) { p.Annotations["x"] = "y" }},
		"annotations removed": {false, func(p *corev1.Pod) { p.Annotations = nil }},
		"finalizer":           {false, func(p *corev1.Pod) { p.Finalizers = []string{"x"} }},
		"owner":               {false, func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "x"}} }},
		"image":               {false, func(p *corev1.Pod) { p.Spec.Containers[0].Image = "evil" }},
		"toleration":          {false, func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }},
		"deadline":            {false, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](1) }},
		"node selector":       {false, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"x": "y"} }},
	})
	checkRights(t, PodRights(), ControllerUser, "Pod", "pods", rows)
}

func TestControllersChangeOnlyTheirOwnPartsOfNodes(t *testing.T) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: map[string]string{"zone": "a"}, Annotations: map[string]string{"a": "b"}},
		Spec:       corev1.NodeSpec{ProviderID: "x", Taints: []corev1.Taint{{Key: "other", Effect: corev1.TaintEffectNoSchedule}}},
	}
	out := corev1.Taint{Key: fence.OutOfServiceTaint, Value: fence.OwnTaintValue, Effect: corev1.TaintEffectNoExecute}
	for user, test := range map[string]struct {
		policy                  Policy
		taints, marks, assigned bool
	}{
		ControllerUser:    {NodeRights(), true, true, false},
		csiControllerUser: {NodeAnnotationRights(), false, false, true},
	} {
		rows := changes(node, map[string]change[corev1.Node]{
			"nothing":             {true, func(*corev1.Node) {}},
			"taint":               {test.taints, func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, out) }},
			"mark":                {test.marks, func(n *corev1.Node) { n.Annotations[fence.RecordedLossAnnotation] = "boot@now" }},
			"server":              {test.assigned, func(n *corev1.Node) { n.Annotations[csi.AddressKey("nfs.fairlead.io")] = "10.0.0.1" }},
			"taint of others":     {false, func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{out} }},
			"other taint":         {false, func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "x"}) }},
			"label":               {false, func(n *corev1.Node) { n.Labels["zone"] = "b" }},
			"label removed":       {false, func(n *corev1.Node) { n.Labels = nil }},
			"annotation":          {false, func(n *corev1.Node) { n.Annotations["a"] = "c" }},
			"annotations removed": {false, func(n *corev1.Node) { n.Annotations = nil }},
			"cordon":              {false, func(n *corev1.Node) { n.Spec.Unschedulable = true }},
			"provider":            {false, func(n *corev1.Node) { n.Spec.ProviderID = "y" }},
		})
		checkRights(t, test.policy, user, "Node", "nodes", rows)
	}
	tainted := node.DeepCopy()
	tainted.Spec.Taints = append(tainted.Spec.Taints, out)
	tainted.Annotations[fence.RecordedLossAnnotation] = "boot@then"
	checkRights(t, NodeRights(), ControllerUser, "Node", "nodes", map[string]row{"taint and mark removed": {write{tainted, node}, true}})
}

func TestCSIControllerRemovesOnlyTheSidecarsFinalizer(t *testing.T) {
	const sidecar = "external-attacher/nfs-lb-csi-storage-gke-io"
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Labels: map[string]string{"a": "b"}, Finalizers: []string{"kubernetes.io/pv-protection", sidecar}},
		Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain},
	}
	rows := changes(volume, map[string]change[corev1.PersistentVolume]{
		"the sidecar's removed": {true, func(v *corev1.PersistentVolume) { v.Finalizers = v.Finalizers[:1] }},
		"all removed":           {false, func(v *corev1.PersistentVolume) { v.Finalizers = nil }},
		"protection removed":    {false, func(v *corev1.PersistentVolume) { v.Finalizers = v.Finalizers[1:] }},
		"another one added":     {false, func(v *corev1.PersistentVolume) { v.Finalizers = append(v.Finalizers, "external-attacher/x") }},
		"label":                 {false, func(v *corev1.PersistentVolume) { v.Labels["a"] = "c" }},
		"reclaim policy": {false, func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}},
		"claim": {false, func(v *corev1.PersistentVolume) { v.Spec.ClaimRef = &corev1.ObjectReference{Name: "x"} }},
	})
	checkRights(t, VolumeRights(), csiControllerUser, "PersistentVolume", "persistentvolumes", rows)
}

func TestCSIControllerWritesOnlyOwnServices(t *testing.T) {
	ours := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "nfs", Labels: map[string]string{publish.ServiceLabel: "nfs"}, OwnerReferences: []metav1.OwnerReference{{Kind: "NFSService", Name: "nfs"}}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.96.0.9"},
	}
	of := func(change func(*corev1.Service)) *corev1.Service {
		s := ours.DeepCopy()
		change(s)
		return s
	}
	in := func(namespace, name string) *corev1.Service {
		return of(func(s *corev1.Service) { s.Namespace, s.Name = namespace, name })
	}
	bare := of(func(s *corev1.Service) { s.Labels = nil })
	foreign := of(func(s *corev1.Service) { s.Labels, s.OwnerReferences = nil, nil })
	exposed := of(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.2.1"} })
	checkRights(t, ServiceRights(), csiControllerUser, "Service", "services", map[string]row{
		"create":                        {write{nil, ours}, true},
		"update":                        {write{ours, of(func(s *corev1.Service) { s.Spec.Ports = []corev1.ServicePort{{Port: 2049}} })}, true},
		"delete":                        {write{ours, nil}, true},
		"restore the label":             {write{bare, ours}, true},
		"remove external IPs":           {write{exposed, ours}, true},
		"delete an exposed Service":     {write{exposed, nil}, true},
		"create without label":          {write{nil, bare}, false},
		"remove the label":              {write{ours, bare}, false},
		"take over":                     {write{foreign, ours}, false},
		"delete a Service of others":    {write{foreign, nil}, false},
		"in kube-system":                {write{nil, in("kube-system", "nfs")}, false},
		"delete in kube-system":         {write{in("kube-system", "nfs"), nil}, false},
		"in default":                    {write{nil, in("default", "nfs")}, true},
		"default/kubernetes":            {write{nil, in("default", "kubernetes")}, false},
		"update of default/kubernetes":  {write{in("default", "kubernetes"), in("default", "kubernetes")}, false},
		"delete default/kubernetes":     {write{in("default", "kubernetes"), nil}, false},
		"kubernetes in another":         {write{nil, in("storage", "kubernetes")}, true},
		"external IPs":                  {write{nil, exposed}, false},
		"selector":                      {write{ours, of(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "x"} })}, false},
		"load balancer":                 {write{ours, of(func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeLoadBalancer })}, false},
		"Service of a claim, bare":      {write{of(func(s *corev1.Service) { s.Labels, s.OwnerReferences[0].Kind = nil, rwx.ClaimKind }), ours}, true},
		"Service of a Deployment, bare": {write{of(func(s *corev1.Service) { s.Labels, s.OwnerReferences[0].Kind = nil, "Deployment" }), nil}, false},
	})
	slice := func(namespace, name, service string, labelled bool) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}, OwnerReferences: []metav1.OwnerReference{{Kind: "Service", Name: service}},
		}}
		if labelled {
			s.Labels[publish.ServiceLabel] = "nfs"
		}
		return s
	}
	mine := slice("storage", "nfs-fairlead-ipv4", "nfs", true)
	checkRights(t, ServiceRights(), csiControllerUser, "EndpointSlice", "endpointslices", map[string]row{
		"create":                          {write{nil, mine}, true},
		"update":                          {write{mine, mine}, true},
		"delete":                          {write{mine, nil}, true},
		"restore the label":               {write{slice("storage", "nfs-fairlead-ipv4", "nfs", false), mine}, true},
		"slice of an endpoint controller": {write{slice("storage", "web-x7x7x", "web", false), nil}, false},
		"take over":                       {write{slice("storage", "web-x7x7x", "web", false), slice("storage", "web-x7x7x", "web", true)}, false},
		"of default/kubernetes":           {write{nil, slice("default", "x-fairlead-ipv4", "kubernetes", true)}, false},
		"named kubernetes":                {write{nil, slice("default", "kubernetes", "nfs", true)}, false},
	})
	endpoints := func(labels map[string]string) runtime.Object {
		//lint:ignore SA1019 the old API is what is deleted
		return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "nfs", Labels: labels}}
	}
	checkRights(t, ServiceRights(), csiControllerUser, "Endpoints", "endpoints", map[string]row{
		"delete those of Ondat's manager": {write{endpoints(map[string]string{ondat.VolumeIDLabel: "v-1"}), nil}, true},
		"delete those of others":          {write{endpoints(nil), nil}, false},
	})
}

// Writes of users never depend on a policy on Fairlead's own accounts.
func TestRightsMatchOnlyFairleadsAccounts(t *testing.T) {
	for _, p := range []Policy{PodRights(), NodeRights(), NodeAnnotationRights(), ServiceRights()} {
		must.Equal(t, len(p.Policy.Spec.MatchConditions), 1, "%s", p.Policy.Name)
		condition := p.Policy.Spec.MatchConditions[0].Expression
		must.Check(t, strings.HasPrefix(condition, `request.userInfo.username == "system:serviceaccount:fairlead-system:fairlead-`), "%s: %s", p.Policy.Name, condition)
		must.Check(t, p.Policy.Spec.ParamKind == nil, "%s has parameters: without one, the API server refuses the writes of all users", p.Policy.Name)
	}
}

type change[T any] struct {
	allowed bool
	do      func(*T)
}

type row struct {
	write
	allowed bool
}

// changes has an update for each change.
func changes[T any, P interface {
	*T
	runtime.Object
}](before P, all map[string]change[T]) map[string]row {
	rows := map[string]row{}
	for what, c := range all {
		after := before.DeepCopyObject().(P)
		c.do(after)
		rows[what] = row{write{before, after}, c.allowed}
	}
	return rows
}

// checkRights evaluates a policy as the API server does.
func checkRights(t *testing.T, p Policy, account, kind, resource string, rows map[string]row) {
	t.Helper()
	evaluate := compiled(t, p)
	for what, row := range rows {
		if refusals := evaluate(account, kind, resource, row.write); len(refusals) == 0 != row.allowed {
			t.Errorf("%s: %s: allowed is %t, refusals are %q", p.Policy.Name, what, !row.allowed, refusals)
		}
		if refusals := evaluate("alice", kind, resource, row.write); len(refusals) > 0 {
			t.Errorf("%s: %s, by a user: refusals are %q", p.Policy.Name, what, refusals)
		}
	}
}

func compiled(t *testing.T, p Policy) func(account, kind, resource string, w write) []string {
	t.Helper()
	compiler := cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var conditions, validations []cel.ExpressionAccessor
	for _, c := range p.Policy.Spec.MatchConditions {
		conditions = append(conditions, &matchconditions.MatchCondition{Name: c.Name, Expression: c.Expression})
	}
	for _, v := range p.Policy.Spec.Validations {
		validations = append(validations, &matchconditions.MatchCondition{Name: "validation", Expression: v.Expression})
	}
	matcher := matchconditions.NewMatcher(compiler.CompileCondition(conditions, options, environment.StoredExpressions), p.Policy.Spec.FailurePolicy, "policy", "validate", p.Policy.Name)
	filter := compiler.CompileCondition(validations, options, environment.StoredExpressions)
	must.Equal(t, len(filter.CompilationErrors()), 0, "%v", filter.CompilationErrors())
	return func(account, kind, resource string, w write) []string {
		t.Helper()
		attributes := attributesOf(t, p, account, kind, resource, w)
		matched := matcher.Match(t.Context(), attributes, nil, nil)
		must.Do(t, matched.Error)
		if !matched.Matches {
			return nil
		}
		gvr, gvk := attributes.GetResource(), attributes.GetKind()
		request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(gvk))
		results, _, err := filter.ForInput(t.Context(), attributes, request, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
		must.Do(t, err)
		var refusals []string
		for i, r := range results {
			must.Do(t, r.Error)
			if r.EvalResult.Value() != true {
				refusals = append(refusals, p.Policy.Spec.Validations[i].Message)
			}
		}
		return refusals
	}
}

func attributesOf(t *testing.T, p Policy, account, kind, resource string, w write) *admission.VersionedAttributes {
	t.Helper()
	operation, named := admission.Update, w.after
	switch {
	case w.before == nil:
		operation = admission.Create
	case w.after == nil:
		operation, named = admission.Delete, w.before
	}
	group := ""
	for _, r := range p.Policy.Spec.MatchConstraints.ResourceRules {
		if r.Resources[0] == resource {
			group = r.APIGroups[0]
		}
	}
	gv := schema.GroupVersion{Group: group, Version: "v1"}
	meta := named.(metav1.Object)
	versioned := &admission.VersionedAttributes{VersionedKind: gv.WithKind(kind), VersionedObject: admission.NewLazyObject(w.after), VersionedOldObject: admission.NewLazyObject(w.before)}
	versioned.Attributes = admission.NewAttributesRecord(w.after, w.before, gv.WithKind(kind), meta.GetNamespace(), meta.GetName(), gv.WithResource(resource), "", operation, nil, false, &user.DefaultInfo{Name: account})
	return versioned
}
