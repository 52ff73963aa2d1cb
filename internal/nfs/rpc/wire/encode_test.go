package wire

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// fromHex reads bytes written with blanks.
func fromHex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	must.Do(t, err)
	return b
}

func TestCallsHaveTheBytesOfTheRFCs(t *testing.T) {
	for name, c := range map[string]struct {
		got  []byte
		want string
	}{
		"NULL v3": {Call{XID: 7, Program: ProgramNFS, Version: 3}.Record(),
			"80000028 00000007 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000"},
		"NULL v4": {Call{XID: 8, Program: ProgramNFS, Version: 4}.Record(),
			"80000028 00000008 00000000 00000002 000186a3 00000004 00000000 00000000 00000000 00000000 00000000"},
		"MNT with AUTH_SYS": {Call{XID: 9, Program: ProgramMount, Version: 3, Procedure: ProcedureMount, Credential: System("host7"), Arguments: PathArguments("/data")}.Record(),
			`80000050 00000009 00000000 00000002 000186a5 00000003 00000001
			 00000001 0000001c 00000000 00000005 686f7374 37000000 00000000 00000000 00000000
			 00000000 00000000 00000005 2f646174 61000000`},
		"GETPORT of MOUNT": {GetPortArguments(ProgramMount, 3), "000186a5 00000003 00000006 00000000"},
		"GETADDR of MOUNT": {GetAddressArguments(ProgramMount, 3, "tcp6"), "000186a5 00000003 00000004 74637036 00000000 00000000"},
		"GETATTR":          {HandleArguments([]byte{1, 2, 3}), "00000003 01020300"},
		"COMPOUND of the root": {LookupArguments(nil),
			"00000000 00000000 00000001 00000018"},
		"COMPOUND of two names": {LookupArguments([]string{"a", "exports"}),
			"00000000 00000000 00000003 00000018 0000000f 00000001 61000000 0000000f 00000007 6578706f 72747300"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, want := hex.EncodeToString(c.got), hex.EncodeToString(fromHex(t, c.want)); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestLongMachineNameIsCutToTheLimit(t *testing.T) {
	d := decoder{rest: System(strings.Repeat("x", 300))}
	if flavor, body := d.word(), d.opaque("body", maxCredential); d.err != nil || flavor != 1 || len(body) != 4+4+256+12 {
		t.Errorf("flavor %d, %d bytes, %v", flavor, len(body), d.err)
	}
}

// shortZeros writes out the zero words of a table.
func shortZeros(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		if w == "0" {
			words[i] = "00000000"
		}
	}
	return strings.Join(words, " ")
}
