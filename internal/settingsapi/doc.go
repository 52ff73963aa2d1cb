// Package settingsapi serves the settings as JSON over HTTP: values in effect, whether they
// are applied, and changes. Fairlead reads with its own rights, for callers whom RBAC
// allows to read. Fairlead does not write: it sends a change to the API server with the
// caller's token, where RBAC and the webhooks judge the change like any other.
package settingsapi
