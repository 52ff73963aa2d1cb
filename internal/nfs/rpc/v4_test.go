package rpc

import (
	"net"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// startV4 answers NULL with success and every COMPOUND with one body.
func startV4(t *testing.T, seen func(request), compound []byte) Target {
	address := startScript(t, answers(t, seen, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureNull {
			return success(), true
		}
		return compound, compound != nil
	}))
	return Target{Address: address, Versions: []Version{V4}, Shares: []string{"/data"}}
}

func TestServerOfV4IsProbedWithItsShares(t *testing.T) {
	for name, c := range map[string]struct {
		compound []byte
		want     Reason
	}{
		"exported":           {success(0, 0, 2, 24, 0, 15, 0), Serving},
		"gone":               {success(2, 0, 2, 24, 0, 15, 2), ExportGone},
		"stale":              {success(70, 0, 2, 24, 0, 15, 70), ExportGone},
		"moved":              {success(10019, 0, 2, 24, 0, 15, 10019), ExportGone},
		"access denied":      {success(13, 0, 2, 24, 0, 15, 13), Denied},
		"Kerberos wanted":    {success(10016, 0, 2, 24, 0, 15, 10016), Denied},
		"credential refused": {be(1, 1, 5), Denied},
		"in grace":           {success(10013, 0, 1, 24, 10013), Grace},
		"asked to wait":      {success(10008, 0, 1, 24, 10008), Busy},
		"too many names":     {success(10018, 0, 0), Unchecked},
		"4.1 only":           {success(10021, 0, 0), MinorVersion},
		"session wanted":     {success(10071, 0, 1, 24, 10071), Unchecked},
		"symbolic link":      {success(10029, 0, 2, 24, 0, 15, 10029), Unchecked},
		"I/O error":          {success(5, 0, 2, 24, 0, 15, 5), Failing},
		"unknown error":      {success(4711, 0, 2, 24, 0, 15, 4711), Failing},
		"system error":       {be(0, 0, 0, 5), Failing},
		"arguments refused":  {be(0, 0, 0, 4), Failing},
		"cut results":        {success(0, 0, 2, 24, 0, 15), Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			result := ask(t, startV4(t, nil, c.compound))
			if result.Reason != c.want || len(result.Findings) != 1 {
				t.Errorf("got %s (%s) of %v, want %s", result.Reason, result.Message, result.Findings, c.want)
			}
		})
	}
}

func TestDeepSharesAreLookedUpAtOnce(t *testing.T) {
	share := "/" + strings.Join(strings.Split("abcdefghijklmnopqrs", ""), "/")
	target := Target{Versions: []Version{V4}, Shares: []string{share}}
	target.Address = startScript(t, answers(t, nil, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureNull {
			return success(), true
		}
		body := []uint32{0, 0, 20, 24, 0}
		for range 19 {
			body = append(body, 15, 0)
		}
		return success(body...), true
	}))
	expect(t, ask(t, target), Serving)
}

func TestVersionsTheServerLacksAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		reply []byte
		want  Reason
		says  string
	}{
		"other versions":   {be(0, 0, 0, 2, 4, 4), WrongVersion, "versions 4 to 4"},
		"not said which":   {be(0, 0, 0, 2), WrongVersion, "does not say which"},
		"no NFS":           {be(0, 0, 0, 1), WrongVersion, "not an NFS server"},
		"other RPC":        {be(1, 0, 3, 3), WrongVersion, "RPC version 2"},
		"Kerberos wanted":  {be(1, 1, 13), Denied, "auth_stat 13"},
		"procedure lacks":  {be(0, 0, 0, 3), Failing, "PROC_UNAVAIL"},
		"server's failure": {be(0, 0, 0, 5), Failing, "SYSTEM_ERR"},
	} {
		t.Run(name, func(t *testing.T) {
			address := startScript(t, answers(t, nil, func(r request) ([]byte, bool) {
				if r.version == 4 {
					return success(), true
				}
				return c.reply, true
			}))
			result := ask(t, Target{Address: address, Versions: []Version{V3, V4}})
			if result.Reason != c.want || !strings.Contains(result.Message, c.says) {
				t.Errorf("got %s (%s), want %s (%s)", result.Reason, result.Message, c.want, c.says)
			}
			must.True(t, len(result.Findings) == 2 && result.Findings[1].Reason == Serving, "v4 is served: %v", result.Findings)
		})
	}
}

func TestEachVersionHasAConnectionOfItsOwn(t *testing.T) {
	connections := make(chan struct{}, 8)
	script := answers(t, nil, serving)
	address := startScript(t, func(c net.Conn) { connections <- struct{}{}; script(c) })
	client := &Client{Timeout: generous}
	for range 2 {
		expect(t, client.Probe(t.Context(), Target{Address: address, Versions: []Version{V3, V4}}), Serving)
	}
	must.Equal(t, len(connections), 4, "connections for two versions, probed twice")
}
