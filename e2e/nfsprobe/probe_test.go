// Package nfsprobe_test probes a real server of NFS v3 (go-nfs). internal/nfs/rpc has the other tests of probes, against
// scripted servers: the product does not require a server of NFS.
package nfsprobe_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
	"github.com/willscott/go-nfs/helpers/memfs"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestMain(m *testing.M) {
	nfs.Log.SetLevel(nfs.PanicLevel)
	os.Exit(m.Run())
}

// exports is the server's table of exports: paths that are not in it do not exist.
type exports struct {
	nfs.Handler
	status map[string]nfs.MountStatus
	stale  bool
	files  billy.Filesystem
}

func (e *exports) Mount(_ context.Context, _ net.Conn, request nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	status, known := e.status[string(request.Dirpath)]
	if !known {
		status = nfs.MountStatusErrNoEnt
	}
	return status, e.files, []nfs.AuthFlavor{nfs.AuthFlavorNull}
}

func (e *exports) FromHandle(handle []byte) (billy.Filesystem, []string, error) {
	if e.stale {
		return nil, nil, errors.New("the handle is of an earlier life")
	}
	return e.Handler.FromHandle(handle)
}

// serve runs a server of NFS v3 and MOUNT on one port.
func serve(t *testing.T, e *exports) netip.AddrPort {
	t.Helper()
	e.files = memfs.New()
	if _, err := e.files.Create("hello"); err != nil { // also makes the root
		t.Fatal(err)
	}
	e.Handler = helpers.NewCachingHandler(helpers.NewNullAuthHandler(e.files), 64)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { listener.Close() })
	go func() { _ = (&nfs.Server{Handler: e, Context: t.Context()}).Serve(listener) }()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

func TestServerOfV3IsProbedWithItsShares(t *testing.T) {
	const notExported, failing = "is not exported, or hidden from the prober", "look at the server's log"
	for name, c := range map[string]struct {
		server exports
		shares []string
		wrong  string // part of the message; empty: healthy
	}{
		"no share named":      {exports{}, nil, ""},
		"exported":            {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk, "/": nfs.MountStatusOk}}, []string{"/data", "/"}, ""},
		"export gone":         {exports{}, []string{"/data"}, notExported},
		"one of two gone":     {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk}}, []string{"/gone", "/data"}, notExported},
		"denied":              {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrAcces}}, []string{"/data"}, ""},
		"I/O error":           {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrIO}}, []string{"/data"}, failing},
		"handle stale":        {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk}, stale: true}, []string{"/data"}, notExported},
		"MOUNT not supported": {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrNotSupp}}, []string{"/data"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, &c.server)
			result := rpc.Probe(t.Context(), rpc.Target{
				Address: address, Versions: []int32{rpc.V3}, Shares: c.shares, MountPort: address.Port(), Timeout: 30 * time.Second,
			})
			want := rpc.Healthy
			if c.wrong != "" {
				want = rpc.Unhealthy
			}
			must.True(t, result.Verdict == want && strings.Contains(result.Message, c.wrong) && (result.Message == "") == (c.wrong == ""),
				"got %s (%s), want %s (%s)", result.Verdict, result.Message, want, c.wrong)
			must.True(t, result.Took > 0, "took %s", result.Took)
		})
	}
}
