// Package volumes keeps the objects of each shared volume consistent with the volume's Service,
// also objects that were written while the webhooks were away. It corrects the endpoint, and
// restarts a server pod that clients can't reach once no started workload uses the volume.
// It also reports contested addresses.
package volumes
