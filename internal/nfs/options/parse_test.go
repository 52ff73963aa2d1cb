package options

import (
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		list    []string
		mount   string
		kb      int // -1: none
		unknown string
	}{
		"the proposal's example": {
			[]string{"vers=3", "nconnect=16", "rsize=1048576", "wsize=1048576", "nolock", "read_ahead_kb=15360"},
			"vers=3 nconnect=16 rsize=1048576 wsize=1048576 nolock", 15360, "",
		},
		// The GKE driver takes read_ahead_kb out only where it is an element of its own.
		"several in one element": {[]string{"vers=3,read_ahead_kb=1", "hard"}, "vers=3 hard", 1, ""},
		"nothing":                {nil, "", -1, ""},
		"zero read-ahead":        {[]string{"read_ahead_kb=0"}, "", 0, ""},
		"in two spellings":       {[]string{"tcp,proto=tcp", "v4.1", "nfsvers=4.1"}, "tcp v4.1", -1, ""},
		"the same twice":         {[]string{"hard", "vers=4.1", "hard", "read_ahead_kb=4,read_ahead_kb=4"}, "hard vers=4.1", 4, ""},
		"a comma in quotes":      {[]string{`context="system_u:object_r:t:s0:c1,c2",ro`}, `context="system_u:object_r:t:s0:c1,c2" ro`, -1, ""},
		"unknown ones":           {[]string{"newopt=1", "x-systemd.automount", "X-own", "other"}, "newopt=1 x-systemd.automount X-own other", -1, "newopt other"},
		"without a value":        {[]string{"rdirplus", "fsc"}, "rdirplus fsc", -1, ""},
	} {
		got, problems := Parse("spec.mountOptions", c.list)
		if len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
		kb := -1
		if got.ReadAheadKB != nil {
			kb = *got.ReadAheadKB
		}
		if strings.Join(got.Mount, " ") != c.mount || kb != c.kb || strings.Join(got.Unknown, " ") != c.unknown {
			t.Errorf("%s: %v, read-ahead %d, unknown %v", name, got.Mount, kb, got.Unknown)
		}
	}
}

func TestParseReportsAllProblems(t *testing.T) {
	for want, texts := range map[string][]string{
		"no number from 0":           {"read_ahead_kb=-1", "read_ahead_kb=", "read_ahead_kb", "read_ahead_kb=1k", "read_ahead_kb=+1", "read_ahead_kb=1048577"},
		"contradicts":                {"read_ahead_kb=1,read_ahead_kb=2", "vers=3,nfsvers=4.1", "vers=3,v4", "hard,soft", "ro,rw", "lock,nolock", "tcp,proto=udp"},
		"not known":                  {"vers=5", "vers=2", "vers", "nfsvers="},
		"no number from 1 to 16":     {"nconnect=17", "nconnect=0", "nconnect", "max_connect=x"},
		"without a unit":             {"timeo=60s", "rsize=1M", "timeo=0", "retrans=-1", "acregmin=+1"},
		"no number from 0 to 2":      {"minorversion=7", "vers=4,minorversion=3"},
		"contradicts vers=4.2":       {"vers=4.2,minorversion=1"},
		"is of NFSv4":                {"vers=3,minorversion=1"},
		"in double quotes":           {"context=system_u:object_r:container_file_t:s0:c15,c22", "fscontext=a:b:c:s0:c1,c2.c5"},
		"from other servers":         {"remoteports=10.0.0.1-10.0.0.8", "remoteports=10.0.0.1-10.0.0.8,sloppy"},
		"comes from the NFS service": {"addr=10.0.0.9", "mounthost=evil"},
		"not allowed":                {"bind", "remount", "bg"},
		"in lower case":              {"BIND", "Hard", "VERS=3"},
		"changes propagation":        {"private", "rprivate", "slave", "rslave", "shared", "rshared", "unbindable", "runbindable"},
		"block device":               {"loop", "loop=/dev/loop0", "offset=1", "sizelimit=1", "verity.hashdevice=/dev/sda", "verity.roothash=0"},
		"runs a program":             {"helper=x", "uhelper=x"},
		"mount(8) acts on it":        {"X-mount.subdir=../..", "X-mount.mkdir", "X-mount.idmap=b:0:0:1", "X-mount.owner=0"},
		"source comes from":          {"source=10.0.0.9:/"},
		"empty":                      {"", "hard,", ",hard"},
		"blank":                      {" hard", "hard, soft"},
		"no name":                    {"=1", "-o", "a b=1", "a/b"},
		"control":                    {"hard\x00", "hard\nsoft"},
		"UTF-8":                      {"x-\xff"},
		"quote":                      {`context="a`},
	} {
		for _, text := range texts {
			if _, problems := Parse("f", []string{text}); len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
				t.Errorf("%q: %v, want %s", text, problems, want)
			}
		}
	}
	_, problems := Parse("spec.mountOptions", []string{"vers=9", "hard", "soft,vers=8", "addr=1"})
	var fields []string
	for _, p := range problems {
		fields = append(fields, p.Field)
	}
	must.Equal(t, fields, []string{"spec.mountOptions[0]", "spec.mountOptions[2]", "spec.mountOptions[2]", "spec.mountOptions[3]"}, "got %v", problems)
	if !strings.Contains(problems[1].Message, `"hard" in spec.mountOptions[1]`) {
		t.Errorf("got %s", problems[1])
	}
}

func TestOwnOptionsWinOverDefaults(t *testing.T) {
	for _, c := range []struct{ defaults, own, want []string }{
		{[]string{"vers=4.1", "hard"}, nil, []string{"vers=4.1", "hard"}},
		{[]string{"vers=4.1", "hard", "nconnect=4"}, []string{"nfsvers=3", "softerr"}, []string{"nfsvers=3", "softerr", "nconnect=4"}},
		{[]string{"vers=4.1,nolock"}, []string{"lock,rsize=4096"}, []string{"lock,rsize=4096", "vers=4.1"}},
		{[]string{"read_ahead_kb=1", "ro", "noatime"}, []string{"read_ahead_kb=2", "rw"}, []string{"read_ahead_kb=2", "rw", "noatime"}},
		{nil, []string{"hard"}, []string{"hard"}},
		{[]string{"hard", "ro,soft", "hard"}, nil, []string{"hard", "ro"}},
		{[]string{`context="a`, "hard"}, []string{`fscontext="b`}, []string{`fscontext="b`, "hard"}},
	} {
		got := Merge(c.defaults, c.own)
		must.Equal(t, got, c.want, "%v into %v", c.defaults, c.own)
		must.Equal(t, Merge(c.defaults, got), got, "%v merged again into %v", c.defaults, c.own)
	}
}

func TestPortOfServer(t *testing.T) {
	for _, c := range []struct {
		option string
		port   uint16
		want   string
		fault  bool
	}{
		{"hard", 2049, "hard", false},
		{"hard", 20490, "hard port=20490", false},
		{"port=20490", 20490, "port=20490", false},
		{"port=111", 2049, "port=111", true},
		{"vers=3", 2049, "vers=3 port=2049", false},
	} {
		o, _ := Parse("f", []string{c.option})
		got, problems := o.ForServer("f", c.port)
		if strings.Join(got, " ") != c.want || len(problems) > 0 != c.fault {
			t.Errorf("%s, %d: %v, %v", c.option, c.port, got, problems)
		}
	}
}

func TestReadAheadIsWholePages(t *testing.T) {
	for kb, want := range map[[2]int]int{{5, 4096}: 4, {127, 65536}: 64, {0, 4096}: 0, {3, 512}: 3} {
		must.Equal(t, EffectiveReadAheadKB(kb[0], kb[1]), want, "%v", kb)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"vers=3\nhard", "vers=3,read_ahead_kb=1", `context="a,b",ro`, "read_ahead_kb=99999999999999999999", "x-a,,b", "=,=", `"`, "rdirplus=", "hard,hard\nsoft", "read_ahead_kb0",
	} {
		f.Add(seed, "vers=4.1\nhard\nread_ahead_kb=4")
	}
	f.Fuzz(func(t *testing.T, text, defaults string) {
		list := strings.Split(text, "\n")
		o, problems := Parse("f", list)
		for _, m := range o.Mount {
			name, _, _ := strings.Cut(m, "=")
			if m == "" || strings.ContainsAny(m, "\x00\n") || strings.HasPrefix(m, "-") || name == readAhead || strings.HasPrefix(m, "addr=") || strings.HasPrefix(m, "X-mount.") {
				t.Fatalf("%q reaches mount(8)", m)
			}
		}
		if kb := o.ReadAheadKB; kb != nil && (*kb < 0 || *kb > MaxReadAheadKB) {
			t.Fatalf("read-ahead %d", *kb)
		}
		again, more := Parse("f", o.Mount)
		if len(more) > 0 || !slices.Equal(again.Mount, o.Mount) {
			t.Fatalf("%q reads back as %q, %v", o.Mount, again.Mount, more)
		}
		merged := Merge(strings.Split(defaults, "\n"), list)
		if twice := Merge(strings.Split(defaults, "\n"), merged); !slices.Equal(twice, merged) {
			t.Fatalf("merged %q, then %q", merged, twice)
		}
		if _, own := Parse("f", strings.Split(defaults, "\n")); len(own) == 0 && len(problems) == 0 {
			if _, problems := Parse("f", merged); len(problems) > 0 {
				t.Fatalf("%q and %q are well formed, and together %v", defaults, text, problems)
			}
		}
	})
}

func TestUnknownOptionsAreRefusedUnlessSloppy(t *testing.T) {
	for text, want := range map[string]int{"hard": 0, "x-foo": 0, "nconect=4,newer": 2, "newer,sloppy": 0} {
		parsed, problems := Parse("spec.mountOptions", []string{text})
		must.Equal(t, len(append(problems, parsed.CheckKnown("spec.mountOptions")...)), want, text)
	}
}
