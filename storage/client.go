package storage

// Reasons why a node has no client to mount for it.
const (
	ReasonNoClient       = "no ready client"
	ReasonSeveralClients = "several ready clients"
)

// MountingClient returns the client that mounts on its node now, of all clients
// there. If there is none, or if it could be one of several, reason says so.
// applied is the network that clients are on, zero for the cluster network.
func MountingClient(clients []Client, applied Attachment) (client *Client, reason string) {
	for i := range clients {
		c := &clients[i]
		if !c.Ready || c.Terminating {
			continue
		}
		if client != nil {
			return nil, ReasonSeveralClients
		}
		client = c
	}
	if client == nil || !applied.IsZero() && !client.Reaches(applied) {
		return nil, ReasonNoClient
	}
	return client, ""
}
