package sandbox

import "context"

// StartProcess starts a program, whose end is tied to the end of this process. What it prints is added to the file log.
func StartProcess(name, log, binary string, args, env []string) (*Replica, error) {
	r := newReplica(name, log)
	if err := r.startWith(binary, args, env); err != nil {
		return nil, err
	}
	return r, nil
}

// StartProcess starts another program beside Fairlead. It ends with the sandbox at the latest.
func (s *Sandbox) StartProcess(name, log, binary string, args, env []string) (*Replica, error) {
	r, err := StartProcess(name, log, binary, args, env)
	if err != nil {
		return nil, err
	}
	s.othersMu.Lock()
	defer s.othersMu.Unlock()
	s.others = append(s.others, r)
	return r, nil
}

// Ended is closed when the process has ended.
func (r *Replica) Ended() <-chan struct{} { return r.exited }

// ExitCode of the process, once it has ended.
func (r *Replica) ExitCode() int { return r.cmd.ProcessState.ExitCode() }

// SeedNetworks adds the two networks that pods can be attached to.
func (s *Sandbox) SeedNetworks(ctx context.Context) error { return s.applySeed(ctx, "networks") }

// SeedCoreDNS adds the service account of CoreDNS, with its usual rights.
func (s *Sandbox) SeedCoreDNS(ctx context.Context) error { return s.applySeed(ctx, "coredns") }
