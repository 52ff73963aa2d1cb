// Package conformance checks an admission webhook from outside, as the API server calls it: the protocol, patches,
// behaviour under bad and slow requests, and what is lost while something happens, such as a rolling restart. It knows
// nothing of Fairlead: e2e/conformance/cmd points it at any webhook.
//
// The rules are those of Kubernetes' documentation of dynamic admission control (AdmissionReview v1), and of the API
// server's own client (k8s.io/apiserver, pkg/admission/plugin/webhook).
package conformance
