package storage

// Reasons why a node has no client that mounts.
const (
	ReasonNoClient       = "no ready client"
	ReasonSeveralClients = "several clients"
)

// MountingClient returns the client that mounts on a node, of all clients there. A second client
// is a reason for none: its mounts may live on though it terminates or is not Ready.
// applied is the network of clients, zero for the cluster network.
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
