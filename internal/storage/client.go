package storage

// Reasons why a node has no client to mount for it.
const (
	ReasonNoClient       = "no ready client"
	ReasonSeveralClients = "several clients"
)

// MountingClient returns the client that mounts on its node now, of all clients
// there. If it is not ready to, or could be one of several, reason says so: mounts
// of a client that is terminating, or not Ready, may be alive still.
// applied is the network that clients are on, zero for the cluster network.
func MountingClient(clients []Client, applied Attachment) (client *Client, reason string) {
	if len(clients) > 1 {
		return nil, ReasonSeveralClients
	}
	for i := range clients {
		c := &clients[i]
		if c.Ready && !c.Terminating && (applied.IsZero() || c.Reaches(applied)) {
			return c, ""
		}
	}
	return nil, ReasonNoClient
}
