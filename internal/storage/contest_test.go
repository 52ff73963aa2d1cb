package storage

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	yesterday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	today     = yesterday.Add(24 * time.Hour)
	teamX     = Network{Namespace: "team-x", Name: "nfs"}
)

func TestContest(t *testing.T) {
	at := func(volume, addresses string, since time.Time, change ...func(*Claimant)) Claimant {
		c := Claimant{Volume: volume, Who: "volume " + volume, Network: teamX, Identity: Identity{Addresses: addresses}, Since: since}
		for _, f := range change {
			f(&c)
		}
		return c
	}
	holds := func(c *Claimant) { c.Holds = true }
	const taken = "address 10.0.0.9 on network team-x/nfs is of volume a already: choose another"
	for name, test := range map[string]struct {
		claimants []Claimant
		want      []string
	}{
		"none":                         {},
		"the older object wins":        {[]Claimant{at("b", "10.0.0.9/24", today), at("a", "10.0.0.9", yesterday)}, []string{taken, ""}},
		"age before the name":          {[]Claimant{at("0", "10.0.0.9/24", today), at("a", "10.0.0.9", yesterday)}, []string{taken, ""}},
		"a Service wins over age":      {[]Claimant{at("b", "10.0.0.9", yesterday), at("a", "10.0.0.9", today, holds)}, []string{taken, ""}},
		"the older Service wins":       {[]Claimant{at("b", "10.0.0.9", today, holds), at("a", "10.0.0.9", yesterday, holds)}, []string{taken, ""}},
		"of one age, the name decides": {[]Claimant{at("b", "10.0.0.9", today), at("a", "10.0.0.9", today)}, []string{taken, ""}},
		"one volume by two objects":    {[]Claimant{at("a", "10.0.0.9", today), at("a", "10.0.0.9", yesterday, holds)}, []string{"", ""}},
		"different addresses":          {[]Claimant{at("a", "10.0.0.9", today), at("b", "10.0.0.10", today)}, []string{"", ""}},
		"different networks":           {[]Claimant{at("a", "10.0.0.9", today), at("b", "10.0.0.9", today, func(c *Claimant) { c.Network.Name = "other" })}, []string{"", ""}},
		"no network":                   {[]Claimant{at("a", "10.0.0.9", today, func(c *Claimant) { c.Network = Network{} }), at("b", "10.0.0.9", today, func(c *Claimant) { c.Network = Network{} })}, []string{"", ""}},
		"what a loser does not get is free": {
			[]Claimant{at("a", "10.0.0.9", yesterday), at("b", "10.0.0.9,fd00::9", today), at("c", "fd00::9", today.Add(time.Hour))}, []string{"", taken, ""},
		},
		"a MAC": {
			[]Claimant{at("a", "", yesterday, mac), at("b", "10.0.0.9", today, mac)},
			[]string{"", "MAC address 02:00:00:00:00:01 on network team-x/nfs is of volume a already: choose another"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Contest(test.claimants); !slices.Equal(got, test.want) && len(got)+len(test.want) > 0 {
				t.Fatalf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func mac(c *Claimant) { c.Identity.MAC = "02:00:00:00:00:01" }

func TestContestHasOneWinnerInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claimants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claimant {
			c := Claimant{
				Volume: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "volume"), Network: teamX, Holds: rapid.Bool().Draw(t, "holds"),
				Since:    yesterday.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour),
				Identity: Identity{Addresses: rapid.SampledFrom([]string{"", "10.0.0.9", "10.0.0.9/24,fd00::9", "fd00::9"}).Draw(t, "addresses")},
			}
			if rapid.Bool().Draw(t, "has a MAC") {
				mac(&c)
			}
			c.Who = strings.Join([]string{c.Volume, c.Identity.Addresses, c.Identity.MAC, c.Since.String()}, " ")
			return c
		}), 0, 6).Draw(t, "claimants")
		problems := Contest(claimants)
		for i, a := range claimants {
			for j, b := range claimants {
				if a.Volume != b.Volume && problems[i] == "" && problems[j] == "" && a.Identity.Shared(b.Identity) != "" {
					t.Fatalf("%+v and %+v both win", a, b)
				}
			}
			shares := slices.ContainsFunc(claimants, func(b Claimant) bool { return b.Volume != a.Volume && a.Identity.Shared(b.Identity) != "" })
			if !shares && problems[i] != "" {
				t.Fatalf("%+v loses without a rival", a)
			}
		}
		order := rapid.Permutation(claimants).Draw(t, "order")
		again := Contest(order)
		for i, a := range claimants {
			if j := slices.Index(order, a); again[j] != problems[i] {
				t.Fatalf("%+v: %q in one order, %q in another", a, problems[i], again[j])
			}
		}
	})
}
