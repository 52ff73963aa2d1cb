package rpc

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/willscott/go-nfs"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestServerOfV3IsProbedWithItsShares(t *testing.T) {
	for name, c := range map[string]struct {
		server exports
		shares []string
		want   Reason
	}{
		"no share named":      {exports{}, nil, Serving},
		"exported":            {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk, "/": nfs.MountStatusOk}}, []string{"/data", "/"}, Serving},
		"export gone":         {exports{}, []string{"/data"}, ExportGone},
		"one of two gone":     {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk}}, []string{"/gone", "/data"}, ExportGone},
		"denied":              {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrAcces}}, []string{"/data"}, Denied},
		"I/O error":           {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrIO}}, []string{"/data"}, Failing},
		"handle stale":        {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk}, stale: true}, []string{"/data"}, ExportGone},
		"MOUNT not supported": {exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusErrNotSupp}}, []string{"/data"}, Unchecked},
	} {
		t.Run(name, func(t *testing.T) {
			address := startNFS(t, &c.server)
			result := ask(t, Target{Address: address, Versions: []Version{V3}, Shares: c.shares, MountPort: address.Port()})
			if result.Reason != c.want || len(result.Findings) != max(1, len(c.shares)) {
				t.Errorf("got %s (%s) of %v, want %s", result.Reason, result.Message, result.Findings, c.want)
			}
			must.True(t, result.Message != "" && result.Took > 0, "message %q after %s", result.Message, result.Took)
		})
	}
}

func TestUnmountFollowsEveryMount(t *testing.T) {
	var mounts, unmounts atomic.Int32
	mount := startScript(t, answers(t, func(r request) {
		switch r.procedure {
		case wire.ProcedureMount:
			mounts.Add(1)
		case wire.ProcedureUnmount:
			unmounts.Add(1)
		}
	}, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureMount {
			return success(0, 4, 0x01020304, 0), true
		}
		return success(), true
	}))
	server := startScript(t, answers(t, nil, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureGetAttr {
			return success(70), true
		}
		return success(), true
	}))
	result := ask(t, Target{Address: server, Versions: []Version{V3}, Shares: []string{"/a", "/b"}, MountPort: mount.Port()})
	if result.Reason != ExportGone || mounts.Load() != 2 || unmounts.Load() != 2 {
		t.Errorf("%s (%s) with %d MNT and %d UMNT", result.Reason, result.Message, mounts.Load(), unmounts.Load())
	}
}

func TestPortMapperIsAskedForTheMountPort(t *testing.T) {
	real := startNFS(t, &exports{status: map[string]nfs.MountStatus{"/data": nfs.MountStatusOk}})
	for name, c := range map[string]struct {
		reply []byte
		want  Reason
	}{
		"registered":     {success(uint32(real.Port())), Serving},
		"not registered": {success(0), MountDown},
		"no such port":   {success(65536), MountDown},
		"unavailable":    {be(0, 0, 0, 1), MountDown},
		"may not ask":    {be(1, 1, 5), Denied},
	} {
		t.Run(name, func(t *testing.T) {
			var asked request
			mapper := startScript(t, answers(t, func(r request) { asked = r }, func(request) ([]byte, bool) { return c.reply, true }))
			expect(t, ask(t, Target{Address: real, Versions: []Version{V3}, Shares: []string{"/data"}, PortMapperPort: mapper.Port()}), c.want)
			if asked.program != 100000 || asked.version != 2 || asked.procedure != 3 || string(asked.arguments) != string(be(100005, 3, 6, 0)) {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestMountServiceDownDiffersFromNFSDown(t *testing.T) {
	real := startNFS(t, &exports{})
	closed := listen(t)
	port := addressOf(closed).Port()
	closed.Close()
	for name, target := range map[string]Target{
		"MOUNT refused":       {MountPort: port},
		"port mapper refused": {PortMapperPort: port},
	} {
		target.Address, target.Versions, target.Shares = real, []Version{V3}, []string{"/data"}
		result := ask(t, target)
		if result.Reason != MountDown || result.Reason.Verdict() != Unhealthy {
			t.Errorf("%s: %s (%s)", name, result.Reason, result.Message)
		}
	}
}

func TestIPv6ServersAreAskedThroughRPCBind(t *testing.T) {
	p := probe{client: &Client{}, target: Target{Address: netip.MustParseAddrPort("[::1]:2049")}}
	for address, want := range map[string]string{"[::1]:2049": "GETADDR", "127.0.0.1:2049": "GETPORT", "[::ffff:127.0.0.1]:2049": "GETPORT"} {
		p.target.Address = netip.MustParseAddrPort(address)
		step, call, _ := p.mapperCall()
		must.True(t, step == want && (step == "GETADDR") == (call.Version == 4), "%s: %s, version %d", address, step, call.Version)
	}
}

func TestFaultsAfterNullAreClassified(t *testing.T) {
	mounted := success(0, 4, 0x01020304, 0)
	for name, c := range map[string]struct {
		mount, attributes []byte // nil: the connection is closed
		want              Reason
	}{
		"MOUNT not served":       {be(0, 0, 0, 1), nil, MountDown},
		"other version of MOUNT": {be(0, 0, 0, 2, 1, 2), nil, MountDown},
		"MOUNT refuses":          {be(1, 1, 5), nil, Denied},
		"MOUNT closes":           {nil, nil, MountDown},
		"handle cut":             {success(0, 32, 1), nil, MountDown},
		"GETATTR not served":     {mounted, be(0, 0, 0, 3), Failing},
		"GETATTR refused":        {mounted, be(1, 1, 1), Denied},
		"GETATTR, then closed":   {mounted, nil, Closed},
		"attributes cut":         {mounted, success(0, 2, 0755), Malformed},
		"asked to wait":          {mounted, success(10008), Busy},
		"server fault":           {mounted, success(10006), Failing},
		"exported":               {mounted, success(make([]uint32, 22)...), Serving},
	} {
		t.Run(name, func(t *testing.T) {
			start := func(body []byte) netip.AddrPort {
				return startScript(t, func(conn net.Conn) {
					answers(t, nil, func(r request) ([]byte, bool) {
						if r.procedure == wire.ProcedureNull || r.procedure == wire.ProcedureUnmount {
							return success(), true
						}
						if body == nil {
							conn.Close()
						}
						return body, body != nil
					})(conn)
				})
			}
			target := Target{Address: start(c.attributes), Versions: []Version{V3}, Shares: []string{"/data"}, MountPort: start(c.mount).Port()}
			expect(t, (&Client{Timeout: generous}).Probe(t.Context(), target), c.want)
		})
	}
}

func TestDeniedShareIsLookedUpInTheExports(t *testing.T) {
	list := func(paths ...string) []byte {
		var words []uint32
		for _, path := range paths { // of 4 bytes
			words = append(words, 1, 4, binary.BigEndian.Uint32([]byte(path)), 0)
		}
		return success(append(words, 0)...)
	}
	for name, c := range map[string]struct {
		share   string
		exports []byte
		want    Reason
	}{
		"listed":         {"/dat", list("/oth", "/dat"), Denied},
		"not listed":     {"/dat", list("/oth"), ExportGone},
		"nothing listed": {"/dat", list(), ExportGone},
		"not supported":  {"/dat", be(0, 0, 0, 3), Denied},
		"list cut":       {"/dat", success(1, 4), Denied},
		"below a listed": {"/dat/a", list("/dat"), Denied},
		"longer name":    {"/data", list("/dat"), ExportGone},
		"the root":       {"/", list("/dat"), ExportGone},
	} {
		t.Run(name, func(t *testing.T) {
			server := startScript(t, answers(t, nil, func(r request) ([]byte, bool) {
				switch {
				case r.procedure == wire.ProcedureMount && r.program == wire.ProgramMount:
					return success(13), true
				case r.procedure == wire.ProcedureExports:
					return c.exports, true
				}
				return success(), true
			}))
			expect(t, ask(t, Target{Address: server, Versions: []Version{V3}, Shares: []string{c.share}, MountPort: server.Port()}), c.want)
		})
	}
}
