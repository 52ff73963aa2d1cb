// Package volumes keeps each shared volume's objects in line with its Service,
// also those that were written while the webhooks were away: the endpoint is
// corrected, and a server pod that its clients can't find is restarted as soon
// as no started workload uses the volume. Addresses that are asked for twice are
// reported.
package volumes
