// Package cabundle writes Fairlead's self-signed CA into the webhook configurations, in clusters
// without cert-manager.
package cabundle
