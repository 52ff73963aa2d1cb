package rpc

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestInvalidTargetsAreNotProbed(t *testing.T) {
	good := Target{Address: netip.MustParseAddrPort("127.0.0.1:2049"), Versions: []Version{V3}, Shares: []string{"/", "/data/x"}}
	must.Do(t, good.Validate())
	for name, c := range map[string]struct {
		change func(*Target)
		says   []string
	}{
		"no address":       {func(t *Target) { t.Address = netip.AddrPort{} }, []string{"address"}},
		"port 0":           {func(t *Target) { t.Address = netip.MustParseAddrPort("127.0.0.1:0") }, []string{"address"}},
		"any address":      {func(t *Target) { t.Address = netip.MustParseAddrPort("0.0.0.0:2049") }, []string{"address"}},
		"multicast":        {func(t *Target) { t.Address = netip.MustParseAddrPort("[ff02::1]:2049") }, []string{"address"}},
		"no version":       {func(t *Target) { t.Versions = nil }, []string{"version"}},
		"version 2":        {func(t *Target) { t.Versions = []Version{2} }, []string{"version 2"}},
		"relative share":   {func(t *Target) { t.Shares = []string{"data"} }, []string{"absolute"}},
		"parent directory": {func(t *Target) { t.Shares = []string{"/a/../b"} }, []string{"absolute"}},
		"trailing slash":   {func(t *Target) { t.Shares = []string{"/a/"} }, []string{"absolute"}},
		"zero byte":        {func(t *Target) { t.Shares = []string{"/a\x00"} }, []string{"zero byte"}},
		"long share":       {func(t *Target) { t.Shares = []string{strings.Repeat("/a", 600)} }, []string{"1200 bytes"}},
		"long name":        {func(t *Target) { t.Shares = []string{"/" + strings.Repeat("a", 256)} }, []string{"255 bytes"}},
		"all at once":      {func(t *Target) { *t = Target{Shares: []string{""}} }, []string{"address", "version", "share"}},
	} {
		target := good
		c.change(&target)
		result := (&Client{}).Probe(t.Context(), target)
		must.True(t, result.Reason == Invalid && result.Reason.Verdict() == Unknown, "%s: %s (%s)", name, result.Reason, result.Message)
		for _, text := range c.says {
			must.True(t, strings.Contains(result.Message, text), "%s: %q does not say %q", name, result.Message, text)
		}
	}
}

func TestReasonsAreRankedFromBestToWorst(t *testing.T) {
	verdict := Healthy
	for i, r := range ranking {
		must.True(t, slices.Index(ranking, r) == i && r != "" && !strings.ContainsAny(string(r), " -"), "reason %q twice, empty or not one word", r)
		if next := r.Verdict(); next != verdict {
			order := []Verdict{Healthy, Unknown, Unhealthy}
			must.Equal(t, slices.Index(order, next), slices.Index(order, verdict)+1, "%s after %s", next, verdict)
			verdict = next
		}
	}
	must.True(t, Reason("other").Verdict() == Unknown, "an unknown reason has a verdict")
}

func TestWorstFindingIsTheResult(t *testing.T) {
	findings := []Finding{{Reason: Serving, Message: "fine"}}
	for _, m := range []string{"a", "b", "b", "c", "d", "e"} {
		findings = append(findings, Finding{Reason: ExportGone, Message: m})
	}
	result := summarize(append(findings, Finding{Reason: Denied, Message: "denied"}))
	must.True(t, result.Reason == ExportGone && result.Message == "a; b; c; and 2 more" && len(result.Findings) == 8, "%+v", result)
}
