// Package settingsapi serves the settings as JSON over HTTP: what is in force, whether it
// is applied, and changes. Fairlead reads with rights of its own for whom RBAC
// allows it, and writes nothing: a change goes to the API server with the
// caller's own token, where RBAC and the webhooks judge it like any other.
package settingsapi
