package rwx

import (
	"github.com/fairlead-io/fairlead/internal/multus"
)

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	yesterday = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	today     = yesterday.Add(24 * time.Hour)
	teamX     = multus.Network{Namespace: "team-x", Name: "nfs"}
)

func TestContest(t *testing.T) {
	at := func(volume, addresses string, since time.Time, changes ...func(*Claimant)) Claimant {
		c := Claimant{Volume: volume, Network: teamX, Identity: multus.Identity{Addresses: addresses}, Since: since}
		for _, change := range changes {
			change(&c)
		}
		return c
	}
	holds := func(c *Claimant) { c.Holds = true }
	on := func(n multus.Network) func(*Claimant) { return func(c *Claimant) { c.Network = n } }
	const taken = "address 10.0.0.9 on network team-x/nfs is of another volume already: choose another"
	const takenMAC = "MAC address 02:00:00:00:00:01 on network team-x/nfs is of another volume already: choose another"
	for name, test := range map[string]struct {
		claimants []Claimant
		want      []string
	}{
		"none":                     {},
		"older object wins":        {[]Claimant{at("0", "10.0.0.9/24", today), at("a", "10.0.0.9", yesterday)}, []string{taken, ""}},
		"Service wins over age":    {[]Claimant{at("b", "10.0.0.9", yesterday), at("a", "10.0.0.9", today, holds)}, []string{taken, ""}},
		"older Service wins":       {[]Claimant{at("b", "10.0.0.9", today, holds), at("a", "10.0.0.9", yesterday, holds)}, []string{taken, ""}},
		"same age, name decides":   {[]Claimant{at("b", "10.0.0.9", today), at("a", "10.0.0.9", today)}, []string{taken, ""}},
		"one volume, two objects":  {[]Claimant{at("a", "10.0.0.9", today), at("a", "10.0.0.9", yesterday, holds)}, []string{"", ""}},
		"different addresses":      {[]Claimant{at("a", "10.0.0.9", today), at("b", "10.0.0.10", today)}, []string{"", ""}},
		"different networks":       {[]Claimant{at("a", "10.0.0.9", today), at("b", "10.0.0.9", today, on(netA.Network))}, []string{"", ""}},
		"no network":               {[]Claimant{at("a", "10.0.0.9", today, on(multus.Network{})), at("b", "10.0.0.9", today, on(multus.Network{}))}, []string{"", ""}},
		"a loser reserves nothing": {[]Claimant{at("a", "10.0.0.9", yesterday), at("b", "10.0.0.9,fd00::9", today), at("c", "fd00::9", today.Add(time.Hour))}, []string{"", taken, ""}},
		"MAC":                      {[]Claimant{at("a", "", yesterday, mac), at("b", "10.0.0.9", today, mac)}, []string{"", takenMAC}},
	} {
		must.Equal(t, Contest(test.claimants), test.want, "%s", name)
	}
}

func mac(c *Claimant) { c.Identity.MAC = "02:00:00:00:00:01" }

func TestContestHasOneWinnerInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claimants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Claimant {
			c := Claimant{
				Volume: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "volume"), Network: teamX, Holds: rapid.Bool().Draw(t, "holds"),
				Since:    yesterday.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Hour),
				Identity: multus.Identity{Addresses: rapid.SampledFrom([]string{"", "10.0.0.9", "10.0.0.9/24,fd00::9", "fd00::9"}).Draw(t, "addresses")},
			}
			if rapid.Bool().Draw(t, "has a MAC") {
				mac(&c)
			}
			return c
		}), 0, 6).Draw(t, "claimants")
		problems := Contest(claimants)
		for i, a := range claimants {
			for j, b := range claimants {
				must.True(t, a.Volume == b.Volume || problems[i] != "" || problems[j] != "" || a.Identity.Shared(b.Identity) == "", "%+v and %+v both win", a, b)
			}
			shares := slices.ContainsFunc(claimants, func(b Claimant) bool { return b.Volume != a.Volume && a.Identity.Shared(b.Identity) != "" })
			must.True(t, shares || problems[i] == "", "%+v loses without a rival", a)
		}
		order := rapid.Permutation(claimants).Draw(t, "order")
		again := Contest(order)
		for i, a := range claimants {
			j := slices.Index(order, a)
			must.True(t, again[j] == problems[i], "%+v: %q in one order, %q in another", a, problems[i], again[j])
		}
	})
}
