package catalog

import (
	"math/big"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

func TestSpellingsOfCPUMasks(t *testing.T) {
	const form = "must be CPUs from 0 to 1023, as a hexadecimal mask like 0x3 or as a list like 0-1,5"
	checkSpellings(t, V2CPUMask, map[string]spelled{
		"a mask":                    {value: "0x3", normal: "0x3"},
		"in upper case":             {value: " 0XFF ", normal: "0xff"},
		"zeros in front":            {value: "0x0003", normal: "0x3"},
		"a list":                    {value: "0-1,2,5", normal: "0x27"},
		"space in a list":           {value: " 0 - 1 , 5 ", normal: "0x23"},
		"one CPU":                   {value: "0", normal: "0x1"},
		"a CPU twice":               {value: "3,1-3", normal: "0xe"},
		"the highest CPU":           {value: "1023", normal: "0x8" + strings.Repeat("0", 255)},
		"all CPUs":                  {value: "0x" + strings.Repeat("f", 256), normal: "0x" + strings.Repeat("f", 256)},
		"no CPU":                    {value: "0x0", problem: form + ": no CPU is in it"},
		"empty":                     {value: "", problem: form},
		"nothing after 0x":          {value: "0x", problem: form},
		"no hexadecimal digit":      {value: "0xg", problem: form},
		"a sign":                    {value: "0x-3", problem: form},
		"an underscore":             {value: "0x1_0", problem: form},
		"a digit too many":          {value: "0x1" + strings.Repeat("0", 256), problem: form},
		"a mask without 0x":         {value: "ff", problem: form},
		"a CPU too high":            {value: "1024", problem: form},
		"a CPU far too high":        {value: "0-100000000000000000000", problem: form},
		"the wrong way round":       {value: "5-3", problem: form + `: range "5-3" is the wrong way round`},
		"a range without end":       {value: "5-", problem: form},
		"two ranges in one":         {value: "1-2-3", problem: form},
		"a negative CPU":            {value: "-1", problem: form},
		"a signed CPU":              {value: "+1", problem: form},
		"an empty item":             {value: "1,,2", problem: form},
		"a comma at the end":        {value: "1,", problem: form},
		"brackets, dropped by them": {value: "1)3", problem: form},
	})
	const each = form + `, or one for each data engine as {"v2":"0x3"}`
	checkSpellings(t, DataEngineCPUMask, map[string]spelled{
		"Longhorn's":       {value: `{"v2":"0x3"}`, normal: `{"v2":"0x3"}`},
		"a list":           {value: `{"v2":"0-1,5"}`, normal: `{"v2":"0x23"}`},
		"a plain one":      {value: "0-1", normal: `{"v2":"0x3"}`},
		"of v1":            {value: `{"v1":"0x3"}`, problem: each + `: data engine "v1" must be v2`},
		"of both":          {value: `{"v1":"0x3","v2":"0x3"}`, problem: each + `: data engine "v1" must be v2`},
		"of none":          {value: `{}`, problem: each + ": data engine v2 is missing"},
		"the wrong way":    {value: `{"v2":"5-3"}`, problem: each + `: v2 is "5-3", range "5-3" is the wrong way round`},
		"a number":         {value: `{"v2":3}`, problem: each + ": the value of v2 must be in quotes"},
		"plain and broken": {value: "0x0", problem: each + ": no CPU is in it"},
	})
}

func TestSpellingsOfMemory(t *testing.T) {
	const form = "must be an even number of MiB from 0 to 2147483646"
	checkSpellings(t, V2HugepageLimit, map[string]spelled{
		"Longhorn's":                  {value: "2048", normal: "2048"},
		"zeros":                       {value: "02048", normal: "2048"},
		"none":                        {value: "0", normal: "0"},
		"half a huge page":            {value: "2049", problem: form},
		"less than none":              {value: "-2", problem: form},
		"with a unit":                 {value: "2048Mi", problem: form},
		"more than any node has":      {value: "2147483648", problem: form},
		"more than a number can hold": {value: "99999999999999999998", problem: form},
	})
	const each = form + `, or one for each data engine as {"v2":"2048"}`
	checkSpellings(t, DataEngineMemorySize, map[string]spelled{
		"Longhorn's":       {value: `{"v2":"2048"}`, normal: `{"v2":"2048"}`},
		"a plain one":      {value: " 4096 ", normal: `{"v2":"4096"}`},
		"half a huge page": {value: `{"v2":"2049"}`, problem: each + `: v2 is "2049"`},
	})
}

func TestSpellingsOfNumbersOfSPDK(t *testing.T) {
	for name, test := range map[Name]struct{ least, less, example string }{
		DataEngineCPUCores:  {"0", "-1", "2"},
		DataEngineLargePool: {"1024", "1023", "4096"},
		DataEngineSmallPool: {"8192", "8191", "16384"},
	} {
		each := "must be a whole number from " + test.least + ` to 2147483647, or one for each data engine as {"v2":"` + test.example + `"}`
		checkSpellings(t, name, map[string]spelled{
			"the least":           {value: `{"v2":"` + test.least + `"}`, normal: `{"v2":"` + test.least + `"}`},
			"less than the least": {value: `{"v2":"` + test.less + `"}`, problem: each + `: v2 is "` + test.less + `"`},
			"a plain one":         {value: " 016384 ", normal: `{"v2":"16384"}`},
			"a fraction":          {value: "9000.5", problem: each},
			"of v1":               {value: `{"v1":"16384"}`, problem: each + `: data engine "v1" must be v2`},
		})
	}
}

func TestSpellingsOfSPDKSwitches(t *testing.T) {
	const each = `must be "true" or "false", or one for each data engine as {"v2":"true"}`
	for _, name := range []Name{DataEngineHugepages, DataEngineInterrupts, DataEngineCPUIsolation} {
		checkSpellings(t, name, map[string]spelled{
			"on":            {value: `{"v2":"true"}`, normal: `{"v2":"true"}`},
			"spelled short": {value: `{"v2":"T"}`, normal: `{"v2":"true"}`},
			"a plain one":   {value: "0", normal: `{"v2":"false"}`},
			"a word":        {value: `{"v2":"yes"}`, problem: each + `: v2 is "yes"`},
			"no string":     {value: `{"v2":true}`, problem: each + ": the value of v2 must be in quotes"},
			"of v1":         {value: `{"v1":"true"}`, problem: each + `: data engine "v1" must be v2`},
			"empty":         {value: "", problem: each},
		})
	}
}

func TestSPDKIsAskedOfV2InstanceManagersAlone(t *testing.T) {
	for name, test := range map[Name]struct{ value, want string }{
		DataEngineCPUMask:    {`{"v2":"0-1"}`, "0x3"},
		V2CPUMask:            {"0X3", "0x3"},
		DataEngineMemorySize: {`{"v2":"04096"}`, "4096"},
		V2HugepageLimit:      {" 1024", "1024"},
		DataEngineHugepages:  {"F", "false"},
		DataEngineInterrupts: {`{"v2":"1"}`, "true"},
		DataEngineCPUCores:   {`{"v2":"02"}`, "2"}, DataEngineCPUIsolation: {`{"v2":"T"}`, "true"},
		DataEngineLargePool: {"4096", "4096"}, DataEngineSmallPool: {`{"v2":"16384"}`, "16384"},
		LogPath: {"/var/lib/longhorn/logs/", "/var/lib/longhorn/logs"},
	} {
		tests := map[string]asked{
			"v2":              {value: test.value, component: managerV2, want: test.want},
			"not well formed": {value: `{"v1":"1"}`, component: managerV2, none: true},
		}
		for _, c := range everyKind {
			if c.Engine != EngineV2 {
				tests[c.Name] = asked{value: test.value, component: c, none: true}
			}
		}
		checkWants(t, name, nil, tests)
	}
}

// Where both are there, the first in the catalog decides.
func TestTheNewerSPDKSettingsAreFirst(t *testing.T) {
	if position(DataEngineCPUMask) > position(V2CPUMask) || position(DataEngineMemorySize) > position(V2HugepageLimit) {
		t.Error("they are not")
	}
}

// A list and the mask of the same CPUs are one value.
func TestListsAndMasksAreOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cpus := rapid.SliceOfN(rapid.IntRange(0, maxCPU), 1, 5).Draw(t, "cpus")
		mask, items := new(big.Int), []string{}
		for _, cpu := range cpus {
			mask.SetBit(mask, cpu, 1)
			items = append(items, big.NewInt(int64(cpu)).String())
		}
		list, err := normalizeCPUMask(strings.Join(items, ","))
		if err != nil || list != "0x"+mask.Text(16) || list != CPUMaskTrait("0X"+strings.ToUpper(mask.Text(16))) {
			t.Fatalf("%v: got %s, %v", cpus, list, err)
		}
	})
}

func TestTraitsOfSPDK(t *testing.T) {
	for text, want := range map[string]string{"0x03": "0x3", "0-1": "0x3", "": "", "strange": "strange"} {
		if got := CPUMaskTrait(text); got != want {
			t.Errorf("mask %q: got %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"2Gi": "2048", "0": "0", "2048Mi": "2048"} {
		if got := MemoryTrait(resource.MustParse(text)); got != want {
			t.Errorf("memory %s: got %s, want %s", text, got, want)
		}
	}
}
