package rpc

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestUnmountFollowsEveryMount(t *testing.T) {
	var mounts, unmounts atomic.Int32
	mount := startScript(t, answers(func(r request) {
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
	server := startScript(t, answers(nil, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureGetAttr {
			return success(70), true
		}
		return success(), true
	}))
	result := ask(t, Target{Address: server, Versions: []int32{V3}, Shares: []string{"/a", "/b"}, MountPort: mount.Port()})
	expect(t, result, notExported)
	must.True(t, mounts.Load() == 2 && unmounts.Load() == 2, "%d MNT and %d UMNT", mounts.Load(), unmounts.Load())
}

func TestPortMapperIsAskedForTheMountPort(t *testing.T) {
	real := startV3(t, "/data")
	for name, c := range map[string]struct {
		reply []byte
		want  outcome
	}{
		"registered":     {success(uint32(real.Port())), fine},
		"not registered": {success(0), mountDown},
		"no such port":   {success(65536), mountDown},
		"unavailable":    {be(0, 0, 0, 1), mountDown},
		"may not ask":    {be(1, 1, 5), fine},
	} {
		t.Run(name, func(t *testing.T) {
			var asked request
			mapper := startScript(t, answers(func(r request) { asked = r }, func(request) ([]byte, bool) { return c.reply, true }))
			p := newProbe(Target{Address: real, Versions: []int32{V3}, Shares: []string{"/data"}, Timeout: generous})
			p.portMapper = mapper.Port()
			expect(t, p.run(t.Context()), c.want)
			if asked.program != 100000 || asked.version != 2 || asked.procedure != 3 || string(asked.arguments) != string(be(100005, 3, 6, 0)) {
				t.Errorf("asked %+v", asked)
			}
		})
	}
}

func TestMountServiceDownDiffersFromNFSDown(t *testing.T) {
	real := startV3(t)
	listener := listen(t)
	port := addressOf(listener).Port()
	listener.Close()
	for _, mountPort := range []uint16{port, 0} { // 0: the port mapper refuses
		p := newProbe(Target{Address: real, Versions: []int32{V3}, Shares: []string{"/data"}, MountPort: mountPort, Timeout: generous})
		p.portMapper = port
		expect(t, p.run(t.Context()), mountDown)
	}
}

func TestIPv6ServersAreAskedThroughRPCBind(t *testing.T) {
	var p probe
	for address, want := range map[string]string{"[::1]:2049": "GETADDR", "127.0.0.1:2049": "GETPORT", "[::ffff:127.0.0.1]:2049": "GETPORT"} {
		p.Address = netip.MustParseAddrPort(address)
		step, call, _ := p.mapperCall()
		must.True(t, step == want && (step == "GETADDR") == (call.Version == 4), "%s: %s, version %d", address, step, call.Version)
	}
}

func TestFaultsAfterNullAreClassified(t *testing.T) {
	mounted := success(0, 4, 0x01020304, 0)
	for name, c := range map[string]struct {
		mount, attributes []byte // nil: the connection is closed
		want              outcome
	}{
		"MOUNT not served":       {be(0, 0, 0, 1), nil, mountDown},
		"other version of MOUNT": {be(0, 0, 0, 2, 1, 2), nil, mountDown},
		"MOUNT refuses":          {be(1, 1, 5), nil, fine},
		"MOUNT closes":           {nil, nil, mountDown},
		"handle cut":             {success(0, 32, 1), nil, mountDown},
		"GETATTR not served":     {mounted, be(0, 0, 0, 3), failing},
		"GETATTR refused":        {mounted, be(1, 1, 1), fine},
		"GETATTR, then closed":   {mounted, nil, closed},
		"status cut":             {mounted, success(), badReply},
		"asked to wait":          {mounted, success(10008), fine},
		"server fault":           {mounted, success(10006), failing},
		"exported":               {mounted, success(make([]uint32, 22)...), fine},
	} {
		t.Run(name, func(t *testing.T) {
			start := func(body []byte) netip.AddrPort {
				return startScript(t, func(conn net.Conn) {
					answers(nil, func(r request) ([]byte, bool) {
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
			target := Target{Address: start(c.attributes), Versions: []int32{V3}, Shares: []string{"/data"}, MountPort: start(c.mount).Port()}
			expect(t, ask(t, target), c.want)
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
		want    outcome
	}{
		"listed":         {"/dat", list("/oth", "/dat"), fine},
		"not listed":     {"/dat", list("/oth"), notExported},
		"nothing listed": {"/dat", list(), notExported},
		"not supported":  {"/dat", be(0, 0, 0, 3), fine},
		"list cut":       {"/dat", success(1, 4), fine},
		"below a listed": {"/dat/a", list("/dat"), fine},
		"longer name":    {"/data", list("/dat"), notExported},
		"the root":       {"/", list("/dat"), notExported},
	} {
		t.Run(name, func(t *testing.T) {
			server := startScript(t, answers(nil, func(r request) ([]byte, bool) {
				switch {
				case r.procedure == wire.ProcedureMount && r.program == wire.ProgramMount:
					return success(13), true
				case r.procedure == wire.ProcedureExports:
					return c.exports, true
				}
				return success(), true
			}))
			expect(t, ask(t, Target{Address: server, Versions: []int32{V3}, Shares: []string{c.share}, MountPort: server.Port()}), c.want)
		})
	}
}
