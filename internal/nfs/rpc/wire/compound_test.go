package wire

import (
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// The operations are PUTROOTFH, LOOKUP and LOOKUP.
func TestParseCompound(t *testing.T) {
	for name, c := range map[string]struct{ results, want string }{
		"found":             {"00000000 00000000 00000003 00000018 0 0000000f 0 0000000f 0", "OK (0)"},
		"found, tag echoed": {"00000000 00000003 616263 00 00000003 00000018 0 0000000f 0 0000000f 0", "OK (0)"},
		"first name gone":   {"00000002 00000000 00000002 00000018 0 0000000f 00000002", "NOENT (2)"},
		"second name gone":  {"00000002 00000000 00000003 00000018 0 0000000f 0 0000000f 00000002", "NOENT (2)"},
		"access denied":     {"0000000d 00000000 00000002 00000018 0 0000000f 0000000d", "ACCES (13)"},
		"stale":             {"00000046 00000000 00000002 00000018 0 0000000f 00000046", "STALE (70)"},
		"in grace":          {"0000271d 00000000 00000001 00000018 0000271d", "GRACE (10013)"},
		"asked to wait":     {"00002718 00000000 00000001 00000018 00002718", "DELAY (10008)"},
		"only 4.1":          {"00002725 00000000 00000000", "MINOR_VERS_MISMATCH (10021)"},
		"session wanted":    {"00002757 00000000 00000001 00000018 00002757", "OP_NOT_IN_SESSION (10071)"},
		"illegal operation": {"0000273c 00000000 00000001 0000273c 0000273c", "OP_ILLEGAL (10044)"},

		"empty":                 {"", "error: reply is cut short"},
		"tag cut":               {"00000000 00000004 6162", "error: reply is cut short"},
		"no count":              {"00000000 00000000", "error: reply is cut short"},
		"results cut":           {"00000000 00000000 00000003 00000018 0 0000000f", "error: reply is cut short"},
		"too many results":      {"00000000 00000000 00000004", "error: results of COMPOUND do not match its operations: 4 results to 3 operations"},
		"4 Gi results":          {"00000000 00000000 ffffffff", "error: results of COMPOUND do not match its operations: 4294967295 results to 3 operations"},
		"other operation":       {"00000000 00000000 00000001 00000016 0", "error: results of COMPOUND do not match its operations: operation 24 answered as 22"},
		"status not the last's": {"00000002 00000000 00000002 00000018 0 0000000f 0000000d", "error: results of COMPOUND do not match its operations: ACCES (13) of one operation, NOENT (2) of all"},
		"goes on after error":   {"00000002 00000000 00000003 00000018 0 0000000f 00000002 0000000f 00000002", "error: results of COMPOUND do not match its operations: NOENT (2) of one operation, NOENT (2) of all"},
		"OK, and nothing done":  {"00000000 00000000 00000000", "error: results of COMPOUND do not match its operations: OK without an answer to each"},
		"OK, and a name left":   {"00000000 00000000 00000002 00000018 0 0000000f 0", "error: results of COMPOUND do not match its operations: OK without an answer to each"},
	} {
		t.Run(name, func(t *testing.T) {
			status, err := ParseLookup(fromHex(t, shortZeros(c.results)), 2)
			must.Equal(t, result(err, status), c.want, "\nwant")
		})
	}
}
