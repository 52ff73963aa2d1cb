// Package gates removes the scheduling gate of fencing from pods, once no lost node holds
// their volumes. It is optional: without the webhook that adds the gate, no pod has one.
package gates
