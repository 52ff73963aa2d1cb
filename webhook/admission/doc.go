// Package admission serves admission reviews: it decodes the fields that a rule reads, asks the rule, and answers with
// patch operations or a denial with causes. It measures, logs and annotates each decision.
package admission
