// Package settingsapi serves the settings as JSON over HTTP: values in effect, whether they
// are applied, and changes. Fairlead reads and writes with the caller's token, so that RBAC,
// the webhooks and the audit log of the API server see the caller.
package settingsapi
