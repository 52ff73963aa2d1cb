package cluster

import (
	"fmt"
	"os"
)

// auditPolicy records who asked for what, of one group of users: a record of
// everybody would be most of what the API server writes.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: [%q]
- level: None
`

func (s setup) auditFlags() []string {
	if s.options.AuditGroup == "" {
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
	if s.options.AuditGroup == "" {
		return nil
	}
	if err := os.WriteFile(s.files.auditPolicy(), fmt.Appendf(nil, auditPolicy, s.options.AuditGroup), 0o644); err != nil {
		return fmt.Errorf("writing the audit policy: %w", err)
	}
	return nil
}
