package wire

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseCompound(t *testing.T) {
	lookup := Lookup{Names: []string{"a", "b"}} // PUTROOTFH, LOOKUP, LOOKUP, GETFH
	for name, c := range map[string]struct{ results, want string }{
		"found":             {"00000000 00000000 00000004 00000018 0 0000000f 0 0000000f 0 0000000a 0 00000002 abcd0000", "OK (0) 2 [171 205]"},
		"found, tag echoed": {"00000000 00000003 616263 00 00000004 00000018 0 0000000f 0 0000000f 0 0000000a 0 00000001 ab000000", "OK (0) 2 [171]"},
		"first name gone":   {"00000002 00000000 00000002 00000018 0 0000000f 00000002", "NOENT (2) 0 []"},
		"second name gone":  {"00000002 00000000 00000003 00000018 0 0000000f 0 0000000f 00000002", "NOENT (2) 1 []"},
		"access denied":     {"0000000d 00000000 00000002 00000018 0 0000000f 0000000d", "ACCES (13) 0 []"},
		"stale":             {"00000046 00000000 00000002 00000018 0 0000000f 00000046", "STALE (70) 0 []"},
		"in grace":          {"0000271d 00000000 00000001 00000018 0000271d", "GRACE (10013) 0 []"},
		"asked to wait":     {"00002718 00000000 00000001 00000018 00002718", "DELAY (10008) 0 []"},
		"only 4.1":          {"00002725 00000000 00000000", "MINOR_VERS_MISMATCH (10021) 0 []"},
		"session wanted":    {"00002757 00000000 00000001 00000018 00002757", "OP_NOT_IN_SESSION (10071) 0 []"},
		"illegal operation": {"0000273c 00000000 00000001 0000273c 0000273c", "OP_ILLEGAL (10044) 0 []"},

		"empty":                 {"", "error: reply is cut short"},
		"tag cut":               {"00000000 00000004 6162", "error: reply is cut short"},
		"no count":              {"00000000 00000000", "error: reply is cut short"},
		"results cut":           {"00000000 00000000 00000004 00000018 0 0000000f", "error: reply is cut short"},
		"too many results":      {"00000000 00000000 00000005", "error: results of COMPOUND do not match its operations: 5 results to 4 operations"},
		"4 Gi results":          {"00000000 00000000 ffffffff", "error: results of COMPOUND do not match its operations: 4294967295 results to 4 operations"},
		"other operation":       {"00000000 00000000 00000001 00000016 0", "error: results of COMPOUND do not match its operations: operation 24 answered as 22"},
		"status not the last's": {"00000002 00000000 00000002 00000018 0 0000000f 0000000d", "error: results of COMPOUND do not match its operations: ACCES (13) of one operation, NOENT (2) of all"},
		"goes on after error":   {"00000002 00000000 00000003 00000018 0 0000000f 00000002 0000000f 00000002", "error: results of COMPOUND do not match its operations: NOENT (2) of one operation, NOENT (2) of all"},
		"OK, and nothing done":  {"00000000 00000000 00000000", "error: results of COMPOUND do not match its operations: OK without a file handle"},
		"OK, empty handle":      {"00000000 00000000 00000004 00000018 0 0000000f 0 0000000f 0 0000000a 0 00000000", "error: results of COMPOUND do not match its operations: OK without a file handle"},
		"handle of 129 bytes":   {"00000000 00000000 00000004 00000018 0 0000000f 0 0000000f 0 0000000a 0 00000081", "error: the file handle has 129 bytes, more than 128"},
	} {
		t.Run(name, func(t *testing.T) {
			found, err := lookup.Parse(fromHex(t, shortZeros(c.results)))
			must.Equal(t, result(err, found.Status, found.Done, found.Handle), c.want, "\nwant")
		})
	}
}

func TestLongPathsTakeSeveralCompounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOf(rapid.StringN(1, 5, 20)).Draw(t, "names")
		lookup, later := Lookup{Names: names}.Next()
		walked := slices.Clone(lookup.Names)
		for len(later) > 0 {
			lookup, later = Lookup{From: []byte{1}, Names: later}.Next()
			walked = append(walked, lookup.Names...)
			if len(lookup.operations()) > 16 {
				t.Fatalf("%d operations, and Linux allows 16", len(lookup.operations()))
			}
		}
		if !slices.Equal(walked, names) {
			t.Fatalf("walked %q of %q", walked, names)
		}
	})
}
