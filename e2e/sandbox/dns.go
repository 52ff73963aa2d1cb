package sandbox

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"
)

// DNS is a CoreDNS that answers for the cluster's domain, as pods would ask it.
type DNS struct {
	// Address is where it listens, UDP and TCP.
	Address string
	// Log is the file of what it prints.
	Log string

	process *Replica // kept like a process of Fairlead
}

// corefile is the part of kubeadm's that is about the cluster's domain. There,
// too, nothing but the TTL keeps its answers; here nothing does.
const corefile = `%s:%s {
    bind %s
    errors
    kubernetes {
        kubeconfig %q
        ttl 0
    }
}
`

// StartDNS starts CoreDNS under a service account with its usual rights, and
// waits until it answers. It ends with the sandbox.
func (s *Sandbox) StartDNS(ctx context.Context) (*DNS, error) {
	binaries, err := s.Ensure(ctx, "coredns")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.Dir, "coredns-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for CoreDNS: %w", err)
	}
	if err := s.applySeed(ctx, "coredns"); err != nil {
		return nil, err
	}
	kubeconfig, err := s.ServiceAccountKubeconfig(ctx, "kube-system", "coredns", dir)
	if err != nil {
		return nil, err
	}
	host, port, err := freeDNSPort()
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "Corefile")
	if err := os.WriteFile(config, fmt.Appendf(nil, corefile, s.State.ClusterDomain, port, host, kubeconfig), 0o644); err != nil {
		return nil, fmt.Errorf("writing the Corefile: %w", err)
	}
	d := &DNS{Address: net.JoinHostPort(host, port), Log: filepath.Join(dir, "log")}
	d.process = newReplica("coredns", d.Log)
	if err := d.process.start(filepath.Join(binaries, "coredns"), []string{"-conf", config}, nil); err != nil {
		return nil, err
	}
	s.dns = append(s.dns, d)
	return d, d.waitAnswers(ctx, "no-such-service.default.svc."+s.State.ClusterDomain)
}

// waitAnswers waits until CoreDNS says that there is no such name. That is what
// it knows last: until it has read all it watches, such a name is an error.
func (d *DNS) waitAnswers(ctx context.Context, noSuchName string) error {
	return d.process.Until(ctx, time.Minute, func() error {
		_, err := d.Lookup(ctx, noSuchName)
		return err
	})
}

// freeDNSPort finds a loopback port that is free for UDP as well as TCP.
func freeDNSPort() (host, port string, err error) {
	for range 100 {
		addresses, err := FreeAddresses(1)
		if err != nil {
			return "", "", err
		}
		packets, err := net.ListenPacket("udp", addresses[0])
		if err != nil {
			continue // taken
		}
		defer packets.Close()
		return net.SplitHostPort(addresses[0])
	}
	return "", "", errNoPort
}
