// Package monitoring describes Fairlead's alerts and its dashboard. The manifests of prometheus-operator and the JSON of
// Grafana are generated from the description (make generate), so that both use the metrics that the code has.
package monitoring
