package rpc

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/nfs/rpc/wire"
	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// startV4 answers NULL with success and every COMPOUND with one body.
func startV4(t *testing.T, seen func(request), compound []byte) Target {
	address := startScript(t, answers(seen, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureNull {
			return success(), true
		}
		return compound, compound != nil
	}))
	return Target{Address: address, Versions: []int32{V4}, Shares: []string{"/data"}}
}

func TestServerOfV4IsProbedWithItsShares(t *testing.T) {
	for name, c := range map[string]struct {
		compound []byte
		want     outcome
	}{
		"exported":           {success(0, 0, 2, 24, 0, 15, 0), fine},
		"gone":               {success(2, 0, 2, 24, 0, 15, 2), notExported},
		"stale":              {success(70, 0, 2, 24, 0, 15, 70), notExported},
		"moved":              {success(10019, 0, 2, 24, 0, 15, 10019), notExported},
		"access denied":      {success(13, 0, 2, 24, 0, 15, 13), fine},
		"Kerberos wanted":    {success(10016, 0, 2, 24, 0, 15, 10016), fine},
		"credential refused": {be(1, 1, 5), fine},
		"in grace":           {success(10013, 0, 1, 24, 10013), fine},
		"asked to wait":      {success(10008, 0, 1, 24, 10008), fine},
		"too many names":     {success(10018, 0, 0), fine},
		"4.1 only":           {success(10021, 0, 0), fine},
		"session wanted":     {success(10071, 0, 1, 24, 10071), fine},
		"symbolic link":      {success(10029, 0, 2, 24, 0, 15, 10029), fine},
		"I/O error":          {success(5, 0, 2, 24, 0, 15, 5), failing},
		"unknown error":      {success(4711, 0, 2, 24, 0, 15, 4711), failing},
		"system error":       {be(0, 0, 0, 5), failing},
		"arguments refused":  {be(0, 0, 0, 4), failing},
		"cut results":        {success(), badReply},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, ask(t, startV4(t, nil, c.compound)), c.want)
		})
	}
}

func TestDeepSharesAreLookedUpAtOnce(t *testing.T) {
	share := "/" + strings.Join(strings.Split("abcdefghijklmnopqrs", ""), "/")
	target := Target{Versions: []int32{V4}, Shares: []string{share}}
	target.Address = startScript(t, answers(nil, func(r request) ([]byte, bool) {
		if r.procedure == wire.ProcedureNull {
			return success(), true
		}
		body := []uint32{0, 0, 20, 24, 0}
		for range 19 {
			body = append(body, 15, 0)
		}
		return success(body...), true
	}))
	expect(t, ask(t, target), fine)
}

func TestVersionsTheServerLacksAreReported(t *testing.T) {
	for name, c := range map[string]struct {
		reply []byte
		want  outcome
		says  string
	}{
		"other versions":   {be(0, 0, 0, 2, 4, 4), wrongVersion, "versions 4 to 4"},
		"not said which":   {be(0, 0, 0, 2), wrongVersion, "does not say which"},
		"no NFS":           {be(0, 0, 0, 1), wrongVersion, "not an NFS server"},
		"other RPC":        {be(1, 0, 3, 3), wrongVersion, "RPC version 2"},
		"Kerberos wanted":  {be(1, 1, 13), fine, ""},
		"procedure lacks":  {be(0, 0, 0, 3), failing, "PROC_UNAVAIL"},
		"server's failure": {be(0, 0, 0, 5), failing, "SYSTEM_ERR"},
	} {
		t.Run(name, func(t *testing.T) {
			address := startScript(t, answers(nil, func(r request) ([]byte, bool) {
				if r.version == 4 {
					return success(), true
				}
				return c.reply, true
			}))
			result := ask(t, Target{Address: address, Versions: []int32{V3, V4}})
			expect(t, result, c.want)
			must.True(t, strings.Contains(result.Message, c.says) && !strings.Contains(result.Message, "v4"), "%s", result.Message)
		})
	}
}

// NFSv4's names may begin below those of NFSv3: Linux with fsid=0 (exports(5)), NFS-Ganesha with Pseudo beside Path.
func TestShareWithTwoNamesIsWell(t *testing.T) {
	v3 := exporting("/exports/data", "/both")
	address := startScript(t, answers(nil, func(r request) ([]byte, bool) {
		switch {
		case r.program != wire.ProgramNFS || r.version != uint32(V4) || r.procedure != wire.ProcedureCompound:
			return v3(r)
		case bytes.Equal(r.arguments, wire.LookupArguments(names("/data"))), bytes.Equal(r.arguments, wire.LookupArguments(names("/both"))):
			return success(0, 0, 2, 24, 0, 15, 0), true
		}
		return success(2, 0, 2, 24, 0, 15, 2), true
	}))
	for name, c := range map[string]struct {
		versions []int32
		shares   []string
		want     outcome
	}{
		"name of NFSv3":         {[]int32{V3, V4}, []string{"/exports/data"}, fine},
		"name of NFSv4":         {[]int32{V3, V4}, []string{"/data"}, fine},
		"both names":            {[]int32{V4, V3}, []string{"/exports/data", "/data", "/both"}, fine},
		"name of neither":       {[]int32{V3, V4}, []string{"/exports/data", "/dat"}, notExported},
		"NFSv3's name in NFSv4": {[]int32{V4}, []string{"/exports/data"}, notExported},
	} {
		t.Run(name, func(t *testing.T) {
			expect(t, ask(t, Target{Address: address, Versions: c.versions, Shares: c.shares, MountPort: address.Port()}), c.want)
		})
	}
}

func TestEachVersionHasAConnectionOfItsOwn(t *testing.T) {
	connections := make(chan struct{}, 8)
	script := answers(nil, serving)
	address := startScript(t, func(c net.Conn) { connections <- struct{}{}; script(c) })
	for range 2 {
		expect(t, ask(t, Target{Address: address, Versions: []int32{V3, V4}}), fine)
	}
	must.Equal(t, len(connections), 4, "connections for two versions, probed twice")
}

func TestProblemsOfManySharesAreCut(t *testing.T) {
	target := startV4(t, nil, success(2, 0, 2, 24, 0, 15, 2))
	target.Shares = []string{"/a", "/b", "/b", "/c", "/d", "/e"}
	result := ask(t, target)
	must.True(t, strings.Count(result.Message, "is not exported") == 3 && strings.HasSuffix(result.Message, "; and 2 more"), "%s", result.Message)
}
