// Package server lists the clients of Ceph volumes, by running Ceph's own commands.
package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os/exec"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-io/fairlead/internal/cephclients/cephcli"
)

// Bounds: Ceph may be in trouble itself, and fencing waits for the answers.
const (
	commandsAtOnce = 4 // for all requests
	requestTimeout = 15 * time.Second
	maxRequest     = 256 << 10
)

// Run runs a program, without a shell, and returns what it printed.
type Run func(ctx context.Context, program string, args ...string) ([]byte, error)

// Handler takes the JSON of a cephcli.Request, and answers with that of a cephcli.Answer.
func Handler(run Run) http.Handler {
	places := make(chan struct{}, commandsAtOnce)
	inTurn := func(ctx context.Context, program string, args ...string) ([]byte, error) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			return run(ctx, program, args...)
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting to run %s: %w", program, ctx.Err())
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var request cephcli.Request
		body := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest))
		body.DisallowUnknownFields()
		err := body.Decode(&request)
		if err = cmp.Or(err, request.Validate()); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer(ctx, inTurn, request))
	})
}

// answer asks about all volumes and servers. A failure of one does not affect the others.
func answer(ctx context.Context, run Run, request cephcli.Request) cephcli.Answer {
	a := cephcli.Answer{Clients: map[string]cephcli.Found{}}
	var lock sync.Mutex
	put := func(name string, clients []netip.Addr, err error) {
		lock.Lock()
		defer lock.Unlock()
		a.Clients[name] = found(clients, err)
	}
	var images sync.WaitGroup
	directories := map[string][]string{} // by file system
	for name, v := range request {
		if v.FileSystem != "" {
			directories[v.FileSystem] = append(directories[v.FileSystem], name)
			continue
		}
		images.Go(func() {
			clients, err := ask(ctx, run, "rbd", v.StatusArgs(), cephcli.ParseStatus)
			put(name, clients, err)
		})
	}
	managers, failed := ask(ctx, run, "ceph", cephcli.MgrMetadataArgs(), cephcli.ParseMgrMetadata)
	mdss, err := ask(ctx, run, "ceph", cephcli.MDSStatArgs(), cephcli.ParseMDSStat)
	a.Servers = found(slices.Concat(managers, mdss.Addresses), cmp.Or(err, failed))
	for fileSystem, names := range directories {
		mounted, err := clientsOf(ctx, run, fileSystem, mdss.Ranks[fileSystem])
		for _, name := range names {
			put(name, mounted[path.Clean(request[name].Path)], err)
		}
	}
	images.Wait()
	return a
}

// clientsOf a file system, by mounted path. Each metadata server knows only its own clients.
func clientsOf(ctx context.Context, run Run, fileSystem string, ranks []int) (map[string][]netip.Addr, error) {
	if len(ranks) == 0 {
		return nil, fmt.Errorf("not all of file system %s is served, or it is not known", fileSystem)
	}
	all := map[string][]netip.Addr{}
	for _, rank := range ranks {
		mounted, err := ask(ctx, run, "ceph", cephcli.ClientLsArgs(fileSystem, rank), cephcli.ParseClientLs)
		if err != nil {
			return nil, err
		}
		for at, clients := range mounted {
			all[at] = append(all[at], clients...)
		}
	}
	return all, nil
}

func ask[T any](ctx context.Context, run Run, program string, args []string, parse func([]byte) (T, error)) (T, error) {
	output, err := run(ctx, program, args...)
	if err != nil {
		var none T
		return none, err
	}
	return parse(output)
}

// found combines addresses with the error, if there is one.
func found(addresses []netip.Addr, err error) cephcli.Found {
	slices.SortFunc(addresses, netip.Addr.Compare)
	f := cephcli.Found{Addresses: slices.Compact(addresses)}
	if err != nil {
		f.Problem = err.Error()
	}
	return f
}

const (
	// commandTimeout is needed since ceph waits forever for a missing monitor.
	commandTimeout = 5 * time.Second
	// maxOutput has room for about twenty thousand sessions of one CephFS server, at 1.5 KB each. Truncated output is
	// invalid JSON, and so an error.
	maxOutput    = 32 << 20
	maxComplaint = 300
)

// Local runs programs beside the server, with its environment.
func Local(ctx context.Context, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.WaitDelay = time.Second // for children that keep the output open
	output, complaint := &bounded{most: maxOutput}, &bounded{most: maxComplaint}
	cmd.Stdout, cmd.Stderr = output, complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", program, errors.Join(ctx.Err(), err), bytes.TrimSpace(complaint.taken))
	}
	return output.taken, nil
}

// bounded is a buffer that drops output beyond its limit.
type bounded struct {
	taken []byte
	most  int
}

func (b *bounded) Write(data []byte) (int, error) {
	b.taken = append(b.taken, data[:min(len(data), b.most-len(b.taken))]...)
	return len(data), nil
}
