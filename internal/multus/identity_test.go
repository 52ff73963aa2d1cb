package multus

import (
	"errors"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParseAddresses(t *testing.T) {
	checkParsed(t, ParseAddresses, errNotAddresses, map[string]string{
		" ": "", "192.168.0.10/24": "192.168.0.10/24", "192.168.0.10": "192.168.0.10", "fd00:0:0::0010": "fd00::10",
		"FD00::10/64 , 192.168.0.10/24": "192.168.0.10/24,fd00::10/64",
		// Addresses at the ends of a network that hosts can have.
		"10.0.0.0/31": "10.0.0.0/31", "10.0.0.1/31": "10.0.0.1/31", "10.0.0.7/32": "10.0.0.7/32", "192.168.60.255/16": "192.168.60.255/16",
		"fd00::/127": "fd00::/127", "fd00::ffff:ffff:ffff:ffff/64": "fd00::ffff:ffff:ffff:ffff/64",
	}, map[string]string{
		"x":                    `"x" is not an IP address`,
		"10.0.0.01":            `"10.0.0.01" is not an IP address`,
		"10.0.0.1,":            `"" is not an IP address`,
		"10.0.0.1/33":          `"10.0.0.1/33" is not an address with a prefix length`,
		"10.0.0.1,10.0.0.2/24": "10.0.0.1 and 10.0.0.2/24 are of one family",
		"10.0.0.0/24":          "10.0.0.0/24 is the network's own address",
		"192.168.60.255/24":    "192.168.60.255/24 is the network's broadcast address",
		"10.0.0.3/30":          "10.0.0.3/30 is the network's broadcast address",
		"255.255.255.255":      "255.255.255.255 is reserved (240.0.0.0/4): no interface can have it",
		"240.0.0.1/24":         "240.0.0.1/24 is reserved (240.0.0.0/4): no interface can have it",
		"0.0.0.1":              "0.0.0.1 is reserved (0.0.0.0/8): no interface can have it",
		"fd00::/64":            "fd00::/64 is the anycast address of the network's routers",
		"::ffff:10.0.0.1":      "::ffff:10.0.0.1 is an IPv4 address in IPv6 form: write 10.0.0.1",
		"fe80::1":              "fe80::1 reaches no further than its link",
		"169.254.1.1":          "169.254.1.1 reaches no further than its link",
		"fd00::1%eth0":         "fd00::1%eth0 reaches no further than its link",
		"127.0.0.1":            "127.0.0.1 is no address that a server can have",
		"224.0.0.1/4":          "224.0.0.1/4 is no address that a server can have",
		"::":                   ":: is no address that a server can have",
	})
}

func TestParseMAC(t *testing.T) {
	checkParsed(t, ParseMAC, errNotAMAC, map[string]string{
		"": "", "02:00:5e:00:53:01": "02:00:5e:00:53:01", "00-1B-21-AA-BB-CC": "00:1b:21:aa:bb:cc",
	}, map[string]string{
		"01:00:5e:00:00:01":       "01:00:5e:00:00:01 is for a group of receivers",
		"00:00:00:00:00:00":       "00:00:00:00:00:00 belongs to no interface",
		"02:00:5e:10:00:00:00:01": `"02:00:5e:10:00:00:00:01" has another form`,
		"x":                       `"x" has another form`,
	})
}

// checkParsed wants values parsed, and their results parsed to themselves; others are refused with a problem.
func checkParsed(t *testing.T, parse func(string) (string, error), kind error, accepted, refused map[string]string) {
	t.Helper()
	for value, want := range accepted {
		got, err := parse(value)
		must.Check(t, err == nil && got == want, "%q: got %q, %v; want %q", value, got, err, want)
		if again, err := parse(got); err != nil || again != got {
			t.Errorf("%q reads back as %q, %v", got, again, err)
		}
	}
	for value, problem := range refused {
		got, err := parse(value)
		must.Check(t, errors.Is(err, kind) && err.Error() == kind.Error()+": "+problem && got == "", "%q: got %q, %v; want %s", value, got, err, problem)
	}
}

func TestSharedIdentity(t *testing.T) {
	mine := Identity{Addresses: "10.0.0.9/24,fd00::9", MAC: "02:00:00:00:00:01"}
	for theirs, want := range map[Identity]string{
		{}: "", {Addresses: "10.0.0.90/24", MAC: "02:00:00:00:00:02"}: "", {Addresses: "10.0.0.9"}: "address 10.0.0.9",
		{Addresses: "fd00::9/64"}: "address fd00::9", {MAC: "02:00:00:00:00:01"}: "MAC address 02:00:00:00:00:01",
	} {
		must.Equal(t, mine.Shared(theirs), want, "%+v", theirs)
	}
}
