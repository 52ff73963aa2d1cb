// Package monitoring runs Fairlead's alerts and the queries of its dashboard in Prometheus' own engine: over made-up
// series, and over metrics that were scraped from a real run. It is a module of its own, as Prometheus is large.
package monitoring
