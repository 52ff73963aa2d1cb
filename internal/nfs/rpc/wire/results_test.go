package wire

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

// result writes what a parser returned as text, for tables.
func result(err error, values ...any) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.TrimSpace(fmt.Sprintln(values...))
}

func TestResultsOfProceduresAreParsed(t *testing.T) {
	port := func(b []byte) string { v, err := ParsePort(b); return result(err, v) }
	address := func(b []byte) string { v, err := ParseAddress(b); return result(err, v) }
	mount := func(b []byte) string { s, h, err := ParseMount(b); return result(err, s, h) }
	status := func(b []byte) string { s, err := ParseStatus(b); return result(err, s) }
	exports := func(b []byte) string { v, err := ParseExports(b); return result(err, v) }
	text := func(s string) []byte { return opaque(nil, s) }
	for name, c := range map[string]struct {
		got, want string
	}{
		"port":              {port(word(nil, 20048)), "20048"},
		"no port":           {port(word(nil, 0)), "0"},
		"port too large":    {port(word(nil, 65536)), "error: port is 65536, more than 65535"},
		"port cut":          {port([]byte{0, 0, 1}), "error: reply is cut short"},
		"address of IPv6":   {address(text("::.8.1")), "2049"},
		"address of IPv4":   {address(text("10.0.0.1.78.80")), "20048"},
		"no address":        {address(text("")), "0"},
		"address too long":  {address(text(strings.Repeat("1", 257))), "error: the address has 257 bytes, more than 256"},
		"address of a name": {address(text("nfs.example.org")), `error: address "nfs.example.org" has no port`},
		"port byte of 256":  {address(text("::.256.1")), `error: address "::.256.1" has no port`},
		"too few parts":     {address(text("8.1")), `error: address "8.1" has no port`},
		"address cut":       {address(word(nil, 8)), "error: reply is cut short"},

		"mounted":          {mount(word(opaque(word(nil, 0), []byte{1, 2, 3}), 1, 1)), "OK (0) [1 2 3]"},
		"not exported":     {mount(word(nil, 2)), "NOENT (2) []"},
		"access denied":    {mount(word(nil, 13)), "ACCES (13) []"},
		"unknown status":   {mount(word(nil, 99)), "error 99 []"},
		"no handle":        {mount(word(nil, 0)), "error: reply is cut short"},
		"empty handle":     {mount(word(nil, 0, 0)), "error: the file handle is empty"},
		"handle too long":  {mount(opaque(word(nil, 0), bytes.Repeat([]byte{1}, 65))), "error: the file handle has 65 bytes, more than 64"},
		"handle cut":       {mount(word(nil, 0, 8, 1)), "error: reply is cut short"},
		"mount result cut": {mount(nil), "error: reply is cut short"},

		"attributes":     {status(make([]byte, 4+84)), "OK (0)"},
		"stale":          {status(word(nil, 70)), "STALE (70)"},
		"status cut":     {status([]byte{0, 0, 0}), "error: reply is cut short"},
		"no exports":     {exports(word(nil, 0)), "[]"},
		"exports":        {exports(word(opaque(word(opaque(word(opaque(word(nil, 1), "/a"), 1), "*"), 0, 1), "/b"), 0, 0)), "[/a /b]"},
		"exports cut":    {exports(word(opaque(word(nil, 1), "/a"), 0)), "error: reply is cut short"},
		"group too long": {exports(word(opaque(word(nil, 1), "/a"), 1, 256)), "error: the group has 256 bytes, more than 255"},
		"path too long":  {exports(word(nil, 1, 1025)), "error: the path has 1025 bytes, more than 1024"},
	} {
		must.Equal(t, c.got, c.want, "%s", name)
	}
}

func TestOutcomesHaveTheNamesOfTheRFC(t *testing.T) {
	for outcome, want := range map[Outcome]string{Success: "SUCCESS", SystemError: "SYSTEM_ERR", AuthError: "AUTH_ERROR", 99: "outcome 99"} {
		must.Equal(t, outcome.String(), want)
	}
}
