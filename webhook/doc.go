// Package webhook is the admission server. A request flows through once: TLS,
// route, decode just the fields the rule reads, gather facts, rule, patch
// operations or a denial with causes, response, metrics, audit annotation.
package webhook
