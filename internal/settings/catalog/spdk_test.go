package catalog

import (
	"math/big"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestCPUMaskValues(t *testing.T) {
	const form = "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"
	all := "0x" + strings.Repeat("f", 256)
	checkValues(t, V2CPUMask, form, accepted{
		"0x3": "0x3", " 0XFF ": "0xff", "0x0003": "0x3", all: all,
		"0": "0x1", "0-1,2,5": "0x27", " 0 - 1 , 5 ": "0x23", "3,1-3": "0xe", "1023": "0x8" + strings.Repeat("0", 255),
	}, refused{
		"": "", "0x": "", "0xg": "", "0x-3": "", "0x1_0": "", "0x1" + strings.Repeat("0", 256): "", "ff": "",
		"1024": "", "0-100000000000000000000": "", "5-": "", "1-2-3": "", "-1": "", "+1": "", "1,,2": "", "1,": "", "1)3": "",
		"0x0": "the mask has no CPU",
		"5-3": `range "5-3" is reversed`,
	})
	checkValues(t, DataEngineCPUMask, form+`, or one for each data engine as {"v2":"0x3"}`, accepted{
		`{"v2":"0x3"}`: `{"v2":"0x3"}`, `{"v2":"0-1,5"}`: `{"v2":"0x23"}`, "0-1": `{"v2":"0x3"}`,
	}, refused{
		`{"v1":"0x3"}`:            `data engine "v1" must be v2`,
		`{"v1":"0x3","v2":"0x3"}`: `data engine "v1" must be v2`,
		`{}`:                      "data engine v2 is missing",
		`{"v2":"5-3"}`:            `v2 is "5-3", range "5-3" is reversed`,
		`{"v2":3}`:                "the value of v2 must be in quotes",
		"0x0":                     "the mask has no CPU",
	})
}

func TestMemoryValues(t *testing.T) {
	const form = "must be an even number of MiB from 0 to 2147483646"
	checkValues(t, V2HugepageLimit, form, accepted{"2048": "2048", "02048": "2048", "0": "0", "2147483646": "2147483646"}, refused{
		"2049": "", "-2": "", "2048Mi": "", "2147483648": "", "99999999999999999998": "",
	})
	checkValues(t, DataEngineMemorySize, form+`, or one for each data engine as {"v2":"2048"}`, accepted{
		`{"v2":"2048"}`: `{"v2":"2048"}`, " 4096 ": `{"v2":"4096"}`,
	}, refused{`{"v2":"2049"}`: `v2 is "2049"`})
}

func TestSPDKNumberValues(t *testing.T) {
	for name, test := range map[Name]struct{ least, less, example string }{
		DataEngineCPUCores:  {"0", "-1", "2"},
		DataEngineLargePool: {"1024", "1023", "4096"},
		DataEngineSmallPool: {"8192", "8191", "16384"},
	} {
		form := "must be a whole number from " + test.least + ` to 2147483647, or one for each data engine as {"v2":"` + test.example + `"}`
		least := `{"v2":"` + test.least + `"}`
		checkValues(t, name, form, accepted{least: least, " 016384 ": `{"v2":"16384"}`}, refused{
			`{"v2":"` + test.less + `"}`: `v2 is "` + test.less + `"`, "9000.5": "", `{"v1":"16384"}`: `data engine "v1" must be v2`,
		})
	}
}

func TestSPDKBoolValues(t *testing.T) {
	for _, name := range []Name{DataEngineHugepages, DataEngineInterrupts, DataEngineCPUIsolation} {
		checkValues(t, name, `must be "true" or "false", or one for each data engine as {"v2":"true"}`, accepted{
			`{"v2":"true"}`: `{"v2":"true"}`, `{"v2":"T"}`: `{"v2":"true"}`, "0": `{"v2":"false"}`,
		}, refused{
			"": "", `{"v2":"yes"}`: `v2 is "yes"`, `{"v2":true}`: "the value of v2 must be in quotes", `{"v1":"true"}`: `data engine "v1" must be v2`,
		})
	}
}

func TestLogPathValues(t *testing.T) {
	checkValues(t, LogPath, `must be an absolute path of at least two names without "..", like /var/lib/longhorn/logs`, accepted{
		"/var/lib/longhorn/logs/": "/var/lib/longhorn/logs", "/var/log/longhorn": "/var/log/longhorn", " //var/./log//x ": "/var/log/x",
		"/var/my logs": "/var/my logs", "/var/log/a..b": "/var/log/a..b",
	}, refused{
		"": "", "/": "", "/./": "", "/logs": "", "var/log": "", "/var/../etc/x": "", "/var/log /": "",
		"/var/log\n/x": "", "/var/\x00log": "", "/var/\xfflog": "",
	})
	must.Equal(t, LogDirectoryTrait("/var/lib/longhorn/logs/"), "/var/lib/longhorn/logs")
}

func TestOnlyV2InstanceManagersUseSPDK(t *testing.T) {
	for name, test := range map[Name]struct{ value, want string }{
		DataEngineCPUMask:      {`{"v2":"0-1"}`, "0x3"},
		V2CPUMask:              {"0X3", "0x3"},
		DataEngineMemorySize:   {`{"v2":"04096"}`, "4096"},
		V2HugepageLimit:        {" 1024", "1024"},
		DataEngineHugepages:    {"F", "false"},
		DataEngineInterrupts:   {`{"v2":"1"}`, "true"},
		DataEngineCPUCores:     {`{"v2":"02"}`, "2"},
		DataEngineCPUIsolation: {`{"v2":"T"}`, "true"},
		DataEngineLargePool:    {"4096", "4096"},
		DataEngineSmallPool:    {`{"v2":"16384"}`, "16384"},
		LogPath:                {"/var/lib/longhorn/logs/", "/var/lib/longhorn/logs"},
	} {
		tests := []wanted{{`{"v1":"1"}`, managerV2, nothing}}
		for _, c := range everyKind {
			want := nothing
			if c.Engine == EngineV2 {
				want = test.want
			}
			tests = append(tests, wanted{test.value, c, want})
		}
		checkWants(t, name, nil, tests)
	}
}

func TestCPUListsAndMasksAreTheSameValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.SliceOfN(rapid.IntRange(0, maxCPU), 1, 5).Draw(t, "cpus")
		mask, items := new(big.Int), []string{}
		for _, cpu := range cpus {
			mask.SetBit(mask, cpu, 1)
			items = append(items, big.NewInt(int64(cpu)).String())
		}
		list, err := normalizeCPUMask(strings.Join(items, ","))
		must.True(t, err == nil && list == "0x"+mask.Text(16) && list == CPUMaskTrait("0X"+strings.ToUpper(mask.Text(16))), "%v: got %s, %v", cpus, list, err)
	})
}

func TestSPDKTraits(t *testing.T) {
	for text, want := range map[string]string{"0x03": "0x3", "0-1": "0x3", "": "", "strange": "strange"} {
		must.Equal(t, CPUMaskTrait(text), want, "mask %q", text)
	}
	for text, want := range map[string]string{"2Gi": "2048", "0": "0", "2048Mi": "2048"} {
		must.Equal(t, MemoryTrait(resource.MustParse(text)), want, "memory %s", text)
	}
}
