package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are taken from below the range that Linux gives to outgoing connections
// (net.ipv4.ip_local_port_range starts at 32768): a port from that range that is
// free now may be somebody's outgoing connection when the component listens.
const (
	firstPort = 20000
	lastPort  = 32000
)

// freePorts returns ports on which nobody listens on the loopback.
func freePorts(count int) ([]int, error) {
	const attempts = 1000
	var ports []int
	var listeners []net.Listener
	defer func() {
		for _, listener := range listeners {
			_ = listener.Close()
		}
	}()
	for range attempts {
		if len(ports) == count {
			return ports, nil
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		// Kept open until all are found, so that none is found twice.
		listeners = append(listeners, listener)
		ports = append(ports, port)
	}
	return nil, errors.New("finding free ports on 127.0.0.1: " + fmt.Sprintf("%d attempts gave %d of %d", attempts, len(ports), count))
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// Ports are where the components listen, all on 127.0.0.1.
type Ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"kube-apiserver"`
	ControllerManager int `json:"kube-controller-manager"`
	Scheduler         int `json:"kube-scheduler"`
	// Kubelet is where the API server finds the kubelets of all nodes, if Options.Forwards has any.
	Kubelet int `json:"kubelet"`
}

func choosePorts() (Ports, error) {
	free, err := freePorts(6)
	if err != nil {
		return Ports{}, err
	}
	return Ports{Etcd: free[0], EtcdPeer: free[1], APIServer: free[2], ControllerManager: free[3], Scheduler: free[4], Kubelet: free[5]}, nil
}
