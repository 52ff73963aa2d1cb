package cluster

import (
	"fmt"
	"os"
)

// groupPolicy records who asked for what, of one group of users: a record of
// everybody would be most of what the API server writes.
const groupPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [%q]
- level: None
`

// writesPolicy records who wrote what, and what came of it. Left out is what is
// written all the time and matters to no test.
const writesPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources:
  - {group: coordination.k8s.io, resources: [leases]}
  - {group: "", resources: [events, nodes/status, serviceaccounts/token]}
  - {group: events.k8s.io}
  - {group: authentication.k8s.io}
  - {group: authorization.k8s.io}
- level: Metadata
  resources:
  - {group: "", resources: [secrets, configmaps]}
  - {group: apiextensions.k8s.io}
- level: RequestResponse
`

func (o Options) audits() bool { return o.AuditWrites || o.AuditGroup != "" }

func (o Options) auditPolicy() string {
	if o.AuditWrites {
		return writesPolicy
	}
	return fmt.Sprintf(groupPolicy, o.AuditGroup)
}

func (s setup) auditFlags() []string {
	if !s.options.audits() {
		return nil
	}
	return []string{
		"--audit-policy-file=" + s.files.auditPolicy(),
		"--audit-log-path=" + s.files.log("audit"),
		// In megabytes; the default would begin a new file at a hundred.
		"--audit-log-maxsize=100000",
	}
}

func (s setup) writeAuditPolicy() error {
	if !s.options.audits() {
		return nil
	}
	if err := os.WriteFile(s.files.auditPolicy(), []byte(s.options.auditPolicy()), 0o644); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}
