// Package review is `fairlead review`: what admission says to manifests, without applying them. The package asks the
// webhook's own rules, by the webhook configurations of the installation; it decides nothing by itself.
package review
