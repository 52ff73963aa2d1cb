// Package volumes keeps each shared volume's objects in line with its Service,
// also those that were written while the webhooks were away: the endpoint is
// corrected, and a server pod that does not ask for its Service's network is
// told about.
package volumes
