package rpc

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// startV3 runs a server of NFS v3 and MOUNT on one port, which exports the shares. Real servers are probed in e2e/nfsprobe.
func startV3(t testing.TB, shares ...string) netip.AddrPort {
	t.Helper()
	return startScript(t, answers(nil, exporting(shares...)))
}

// exporting answers as a server of NFS v3 and MOUNT that exports the shares.
func exporting(shares ...string) func(request) ([]byte, bool) {
	return func(r request) ([]byte, bool) {
		switch {
		case r.program == wire.ProgramMount && r.procedure == wire.ProcedureMount:
			for _, share := range shares {
				if bytes.Equal(r.arguments, wire.PathArguments(share)) {
					return success(0, 4, 0x01020304, 0), true
				}
			}
			return success(uint32(wire.NoEntry)), true
		case r.program == wire.ProgramNFS && r.version == uint32(V3) && r.procedure == wire.ProcedureGetAttr:
			return success(make([]uint32, 22)...), true
		}
		return success(), true
	}
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	t.Cleanup(func() { listener.Close() })
	return listener
}

func addressOf(l net.Listener) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() }

// startScript accepts connections and leaves them to the script. It ends them with the test.
func startScript(t testing.TB, script func(net.Conn)) netip.AddrPort {
	t.Helper()
	listener := listen(t)
	var scripts sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, c := range open {
			c.Close()
		}
		mu.Unlock()
		scripts.Wait()
	})
	scripts.Go(func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
			scripts.Go(func() { defer c.Close(); script(c) })
		}
	})
	return addressOf(listener)
}

// ask probes with more time than any probe on loopback takes.
func ask(t testing.TB, target Target) Result {
	t.Helper()
	return askWith(t, target, nil)
}

func askWith(t testing.TB, target Target, dial dial) Result {
	t.Helper()
	target.Timeout = cmp.Or(target.Timeout, generous)
	p := newProbe(target)
	if dial != nil {
		p.dial = dial
	}
	return p.run(t.Context())
}

// outcome is what a probe should say.
type outcome struct {
	verdict Verdict
	text    string // part of the message
}

var (
	fine         = outcome{Healthy, ""}
	canceled     = outcome{Unknown, "the probe was canceled"}
	local        = outcome{Unknown, "can't open connections"}
	failing      = outcome{Unhealthy, "look at the server's log"}
	notExported  = outcome{Unhealthy, "is not exported, or hidden from the prober"}
	mountDown    = outcome{Unhealthy, "answers, and its shares can't be looked up"}
	wrongVersion = outcome{Unhealthy, "is not served"}
	badReply     = outcome{Unhealthy, "another service may have the port"}
	closed       = outcome{Unhealthy, "the connection "}
	silent       = outcome{Unhealthy, "in time (timeout "}
	refused      = outcome{Unhealthy, "refused the connection: no server listens there"}
	unreached    = outcome{Unhealthy, "can't be reached"}
	dialTimeout  = outcome{Unhealthy, "accepted no connection in time"}
)

func (o outcome) fits(r Result) bool {
	return r.Verdict == o.verdict && strings.Contains(r.Message, o.text) && (o.text != "" || r.Message == "")
}

func expect(t testing.TB, result Result, want outcome) {
	t.Helper()
	must.True(t, want.fits(result), "got %s (%s), want %v", result.Verdict, result.Message, want)
}

// serving answers each call with success.
func serving(request) ([]byte, bool) { return success(), true }

type request struct {
	xid, program, version, procedure uint32
	arguments                        []byte
}

// answers is a server with fixed results. Calls it has none for stay unanswered.
func answers(seen func(request), results func(request) ([]byte, bool)) func(net.Conn) {
	return func(c net.Conn) {
		reader := bufio.NewReader(c)
		for {
			record, err := wire.ReadRecord(reader)
			if err != nil || len(record) < 40 {
				return
			}
			words := make([]uint32, 8)
			for i := range words {
				words[i] = binary.BigEndian.Uint32(record[4*i:])
			}
			credential := int(words[7]+3) &^ 3
			r := request{words[0], words[3], words[4], words[5], record[4*8+credential+8:]}
			if seen != nil {
				seen(r)
			}
			if body, ok := results(r); ok {
				if _, err := c.Write(bytes.Join([][]byte{mark(8 + len(body)), be(r.xid, 1), body}, nil)); err != nil {
					return // the client is gone
				}
			}
		}
	}
}

func mark(length int) []byte { return be(1<<31 | uint32(length)) }

func be(words ...uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.BigEndian.AppendUint32(b, w)
	}
	return b
}

// success is the body of an accepted call with results.
func success(results ...uint32) []byte { return be(append([]uint32{0, 0, 0, 0}, results...)...) }
