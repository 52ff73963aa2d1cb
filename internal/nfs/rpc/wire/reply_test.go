package wire

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseReply(t *testing.T) {
	for name, c := range map[string]struct {
		record  string
		want    Reply
		problem string
	}{
		"success":                        {"00000007 00000001 00000000 00000000 00000000 00000000", Reply{}, ""},
		"success with results":           {"00000007 00000001 00000000 00000000 00000000 00000000 01020304", Reply{Results: []byte{1, 2, 3, 4}}, ""},
		"success with a verifier":        {"00000007 00000001 00000000 00000006 00000003 0a0b0c00 00000000", Reply{}, ""},
		"program unavailable":            {"00000007 00000001 00000000 00000000 00000000 00000001", Reply{Outcome: ProgramUnavailable}, ""},
		"other versions":                 {"00000007 00000001 00000000 00000000 00000000 00000002 00000003 00000004", Reply{Outcome: ProgramMismatch, Low: 3, High: 4, HasRange: true}, ""},
		"other versions, not said which": {"00000007 00000001 00000000 00000000 00000000 00000002", Reply{Outcome: ProgramMismatch}, ""},
		"procedure unavailable":          {"00000007 00000001 00000000 00000000 00000000 00000003", Reply{Outcome: ProcedureUnavailable}, ""},
		"garbage arguments":              {"00000007 00000001 00000000 00000000 00000000 00000004", Reply{Outcome: GarbageArguments}, ""},
		"system error":                   {"00000007 00000001 00000000 00000000 00000000 00000005", Reply{Outcome: SystemError}, ""},
		"other RPC version":              {"00000007 00000001 00000001 00000000 00000003 00000003", Reply{Outcome: RPCMismatch, Low: 3, High: 3, HasRange: true}, ""},
		"credential refused":             {"00000007 00000001 00000001 00000001 00000005", Reply{Outcome: AuthError}, ""},

		"empty":                        {"", Reply{}, "cut short"},
		"cut before the outcome":       {"00000007 00000001 00000000 00000000 00000000", Reply{}, "cut short"},
		"cut within the verifier":      {"00000007 00000001 00000000 00000006 00000008 01020304", Reply{}, "cut short"},
		"verifier too long":            {"00000007 00000001 00000000 00000006 00000191", Reply{}, "401 bytes, more than 400"},
		"verifier of 4 GiB":            {"00000007 00000001 00000000 00000006 ffffffff", Reply{}, "more than 400"},
		"cut within the versions":      {"00000007 00000001 00000000 00000000 00000000 00000002 00000003", Reply{}, "cut short"},
		"rejected, cut":                {"00000007 00000001 00000001 00000001", Reply{}, "cut short"},
		"unknown accept_stat":          {"00000007 00000001 00000000 00000000 00000000 00000006", Reply{}, "accept_stat is 6"},
		"unknown reject_stat":          {"00000007 00000001 00000001 00000002", Reply{}, "reject_stat is 2"},
		"unknown reply_stat":           {"00000007 00000001 00000002", Reply{}, "reply_stat is 2"},
		"reply to another call":        {"00000006 00000001 00000000 00000000 00000000 00000000", Reply{}, "reply is to another call"},
		"a call instead of a reply":    {"00000007 00000000 0 00000002", Reply{}, "message type is 0"},
		"reply of RPC over some error": {"00000007 00000001 00000001", Reply{}, "cut short"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseReply(fromHex(t, shortZeros(c.record)), 7)
			if (err != nil) != (c.problem != "") || err != nil && !strings.Contains(err.Error(), c.problem) {
				t.Fatalf("error %v, want %q", err, c.problem)
			}
			if len(got.Results) == 0 {
				got.Results = nil
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
