package multus

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

var (
	netA = Attachment{Network{"kube-system", "a"}, "lhnet1"}
	netB = Attachment{Network{"kube-system", "b"}, "lhnet2"}
)

// interfaces of Longhorn.
var interfaces = []string{"lhnet1", "lhnet2"}

func TestParseSelections(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want       []Attachment
		refused    bool
	}{
		"empty":                          {annotation: ""},
		"empty list":                     {annotation: "[]", want: []Attachment{}},
		"JSON":                           {annotation: `[{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}]`, want: []Attachment{netA}},
		"JSON without a namespace":       {annotation: `[{"name": "x"}]`, want: []Attachment{{Network{"pod-ns", "x"}, ""}}},
		"JSON with fields of others":     {annotation: `[{"name": "x", "ips": ["10.0.0.1/24"], "mac": "02:00", "cni-args": {"a": [1]}}]`, want: []Attachment{{Network{"pod-ns", "x"}, ""}}},
		"short":                          {annotation: "kube-system/a@lhnet1", want: []Attachment{netA}},
		"short without a namespace":      {annotation: "x", want: []Attachment{{Network{"pod-ns", "x"}, ""}}},
		"short, several, spaced":         {annotation: " x , kube-system/a@lhnet1,y@net2 ", want: []Attachment{{Network{"pod-ns", "x"}, ""}, netA, {Network{"pod-ns", "y"}, "net2"}}},
		"JSON element without a name":    {annotation: `[{"namespace": "x"}]`, refused: true},
		"JSON null element":              {annotation: `[null]`, refused: true},
		"JSON object in place of a list": {annotation: `{"name": "x"}`, refused: true},
		"JSON with more after it":        {annotation: `[{"name": "x"}] x`, refused: true},
		"short with an empty item":       {annotation: "x,,y", refused: true},
		"short with an empty interface":  {annotation: "x@", refused: true},
		"short with two interfaces":      {annotation: "x@a@b", refused: true},
		"short with a long interface":    {annotation: "x@sixteen-is-a-lot", refused: true},
		"short with an empty namespace":  {annotation: "/x", refused: true},
		"short with an empty name":       {annotation: "ns/", refused: true},
		"short in upper case":            {annotation: "X", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSelections(test.annotation, "pod-ns")
			if test.refused {
				must.True(t, errors.Is(err, errNotASelection) && got == nil, "got %+v, %v", got, err)
				return
			}
			must.True(t, err == nil && reflect.DeepEqual(got, test.want), "got %+v, %v; want %+v", got, err, test.want)
		})
	}
}

func TestAddNetwork(t *testing.T) {
	// Longhorn's own text, to the letter: it compares the annotations that it manages as strings.
	const longhornA = `{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}`
	const foreign = `[ {"name":"x",  "ips":["10.0.0.1/24"], "future": {"é":1e2}} `
	const ordered = `[{"interface":"lhnet1","name":"a","namespace":"kube-system"}]`
	inPodNamespace := Attachment{Network{"pod-ns", "p"}, "lhnet1"}
	for name, test := range map[string]struct {
		annotation    string
		add           Attachment
		want, problem string
	}{
		"to none, in Longhorn's text":      {"", netA, "[" + longhornA + "]", ""},
		"to blank":                         {" ", netA, "[" + longhornA + "]", ""},
		"to an empty list":                 {"[ ]", netA, "[" + longhornA + "]", ""},
		"to JSON, the rest unchanged":      {foreign + "]", netA, foreign + ", " + longhornA + "]", ""},
		"to JSON over several lines":       {"[\n {\"name\": \"x\"}\n]\n", netA, "[\n {\"name\": \"x\"}\n, " + longhornA + "]", ""},
		"to the short form":                {"x, ns/y@net2", netA, "x, ns/y@net2,kube-system/a@lhnet1", ""},
		"present, JSON":                    {ordered, netA, ordered, ""},
		"present, short":                   {" kube-system/a@lhnet1", netA, " kube-system/a@lhnet1", ""},
		"present, pod's own namespace":     {"p@lhnet1", inPodNamespace, "p@lhnet1", ""},
		"the network on another interface": {"kube-system/a@net1", netA, "kube-system/a@net1,kube-system/a@lhnet1", ""},
		"the cluster network adds nothing": {"x", Attachment{}, "x", ""},
		"clash, short":                     {"kube-system/b@lhnet1", netA, "kube-system/b@lhnet1", "interface lhnet1 is already asked for by network kube-system/b"},
		"clash, JSON":                      {`[{"name": "x", "interface": "lhnet1"}]`, netA, `[{"name": "x", "interface": "lhnet1"}]`, "interface lhnet1 is already asked for by network pod-ns/x"},
		"unreadable":                       {`[{`, netA, `[{`, "not a network selection that Multus understands: unexpected end of JSON input"},
		"unreadable, nothing to add":       {"X", Attachment{}, "X", `not a network selection that Multus understands: "X"`},
	} {
		got, err := AddNetwork(test.annotation, "pod-ns", test.add)
		must.Check(t, got == test.want && text(err) == test.problem, "%s:\ngot  %s, %v\nwant %s, %s", name, got, err, test.want, test.problem)
		clash := (*ClashError)(nil)
		must.Check(t, errors.As(err, &clash) == strings.HasPrefix(name, "clash"), "%s: got error %#v", name, err)
	}
}

func TestManagedAttachment(t *testing.T) {
	for annotation, want := range map[string]Attachment{
		"": {}, "x,kube-system/a@net1": {}, "x, kube-system/b@lhnet2": netB, "kube-system/b@lhnet2,kube-system/a@lhnet1": netB, "[": {},
	} {
		got, err := ManagedAttachment(annotation, "pod-ns", interfaces)
		must.Check(t, got == want && errors.Is(err, errNotASelection) == (annotation == "["), "%q: got %q, %v; want %q", annotation, got, err, want)
	}
}

func TestSetManaged(t *testing.T) {
	const jsonA, jsonB = `{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}`, `{"namespace": "kube-system", "name": "b", "interface": "lhnet2"}`
	jsonX := `{"namespace": "team-x", "name": "nfs", "interface": "` + netX.Interface + `"}`
	for name, test := range map[string]struct {
		annotation string
		set        []Attachment
		want       string
	}{
		"none to one":              {"", []Attachment{netB}, "[" + jsonB + "]"},
		"none to none":             {"x, y", []Attachment{{}}, "x, y"},
		"one to none":              {"[" + jsonA + "]", []Attachment{{}}, ""},
		"one to none, short":       {"kube-system/a@lhnet1", []Attachment{{}}, ""},
		"one to another":           {"[" + jsonA + "]", []Attachment{netB}, "[" + jsonB + "]"},
		"one to another, short":    {"x,kube-system/a@lhnet1,y", []Attachment{netB}, "x,y,kube-system/b@lhnet2"},
		"same interface, another":  {"kube-system/x@lhnet2", []Attachment{netB}, "[" + jsonB + "]"},
		"two to one of them":       {"kube-system/a@lhnet1,x,kube-system/b@lhnet2", []Attachment{netB}, "x,kube-system/b@lhnet2"},
		"unchanged":                {" kube-system/b@lhnet2 , x", []Attachment{netB}, " kube-system/b@lhnet2 , x"},
		"fields of others survive": {`[{"name":"x","future":{"a": 1}}, ` + jsonA + "]", []Attachment{netB}, `[{"name":"x","future":{"a": 1}}, ` + jsonB + "]"},

		"volume network beside the default":   {"", []Attachment{netA, netX}, "[" + jsonA + ", " + jsonX + "]"},
		"only a volume network":               {"", []Attachment{{}, netX}, "[" + jsonX + "]"},
		"volume network added":                {"x, kube-system/a@lhnet1", []Attachment{netA, netX}, "x, kube-system/a@lhnet1," + netX.String()},
		"volume network removed":              {"[" + jsonA + ", " + jsonX + "]", []Attachment{netA}, "[" + jsonA + "]"},
		"volume network unchanged":            {"[" + jsonX + ",  " + jsonA + "]", []Attachment{netA, netX}, "[" + jsonX + ",  " + jsonA + "]"},
		"a user's interface of the same form": {"team-x/nfs@" + netY.Interface, []Attachment{netA}, "team-x/nfs@" + netY.Interface + ",kube-system/a@lhnet1"},
	} {
		got, err := SetManaged(test.annotation, "pod-ns", interfaces, test.set...)
		must.Check(t, err == nil && got == test.want, "%s:\ngot  %s, %v\nwant %s", name, got, err, test.want)
	}
	if got, err := SetManaged("[", "pod-ns", interfaces, netB); got != "[" || !errors.Is(err, errNotASelection) {
		t.Errorf("unreadable: got %q, %v", got, err)
	}
}

func TestAddNetworkOnlyAddsAndIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkAddNetwork(t, genAnnotation(t), genAttachment(t)) })
}

// Regression: a default network that was left and joined again came behind the per-volume networks, and all CSI plugin pods
// restarted for the order.
func TestSetManagedIsAsBeforeOnceSetBack(t *testing.T) {
	own := VolumeAttachment(Network{Namespace: "team-x", Name: "nfs"})
	for _, others := range []string{"", "default/mine", `[{"namespace": "default", "name": "mine", "mac": "02:00:00:00:00:01"}]`} {
		joined, err := SetManaged(others, "pod-ns", interfaces, netB, own)
		must.Do(t, err)
		left, err := SetManaged(joined, "pod-ns", interfaces, own)
		must.Do(t, err)
		again, err := SetManaged(left, "pod-ns", interfaces, netB, own)
		must.Do(t, err)
		must.Equal(t, again, joined)
		must.Check(t, left != joined, "the network was not left: %s", left)
	}
	// Selections of others stay where they are: Multus names their interfaces by place.
	got, err := SetManaged("kube-system/b@lhnet2,default/mine", "pod-ns", interfaces, netB, own)
	must.Do(t, err)
	must.Equal(t, got, "kube-system/b@lhnet2,default/mine,"+own.String())
}

func TestSetManagedLeavesOneAndIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		annotation := genAnnotation(t)
		want := rapid.SampledFrom([]Attachment{{}, netA, netB}).Draw(t, "set")
		once, err := SetManaged(annotation, "pod-ns", interfaces, want)
		must.True(t, err == nil, "%q: %v", annotation, err)
		if twice, err := SetManaged(once, "pod-ns", interfaces, want); err != nil || twice != once {
			t.Fatalf("not idempotent: %q, then %q, %v", once, twice, err)
		}
		var managed, foreign []Attachment
		for _, s := range mustParse(t, once) {
			if slices.Contains(interfaces, s.Interface) {
				managed = append(managed, s)
			} else {
				foreign = append(foreign, s)
			}
		}
		must.True(t, want.IsZero() == (len(managed) == 0) && !slices.ContainsFunc(managed, func(a Attachment) bool { return a != want }),
			"%q: got %v, want %s", annotation, managed, want)
		kept := slices.DeleteFunc(mustParse(t, annotation), func(a Attachment) bool { return slices.Contains(interfaces, a.Interface) })
		must.True(t, slices.Equal(foreign, kept), "%q: foreign selections became %v", annotation, foreign)
	})
}

func FuzzParseSelections(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		selections, err := ParseSelections(annotation, "pod-ns")
		must.True(t, err == nil || errors.Is(err, errNotASelection) && selections == nil, "got %v, %v", selections, err)
		for _, s := range selections {
			must.True(t, s.Name != "" && s.Namespace != "", "a network without a name: %+v", s)
		}
	})
}

func FuzzAddNetwork(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed, "kube-system/a@lhnet1")
	}
	f.Fuzz(func(t *testing.T, annotation, add string) {
		a, err := ParseAttachment(add)
		if err != nil {
			return
		}
		checkAddNetwork(t, annotation, a)
	})
}

var seeds = []string{
	"", " ", "[]", "x", "x,ns/y@net1", "kube-system/a@lhnet1", "kube-system/b@lhnet1", "x,", "@", "null", `[null]`, `"x"`,
	`[{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}]`, `[{"name":"x","ips":["10.0.0.1/24"]}] `,
	`[{"name":"x","NAME":"y"}]`, `[{"name":"x"}`, "[{\"name\":\"\xff\"}]", `[{"name":"a\"b","interface":"]"}]`,
}

// checkAddNetwork holds what AddNetwork promises: it adds, takes nothing away
// and does nothing the second time; refused, it changes nothing.
func checkAddNetwork(t must.TB, annotation string, a Attachment) {
	got, err := AddNetwork(annotation, "pod-ns", a)
	if err != nil {
		must.True(t, got == annotation, "%q: refused with %v, and yet changed to %q", annotation, err, got)
		return
	}
	before, after := mustParse(t, annotation), mustParse(t, got)
	must.True(t, a.IsZero() || slices.Contains(after, a), "%q: %q does not ask for %s", annotation, got, a)
	must.True(t, len(after) >= len(before) && slices.Equal(after[:len(before)], before) && len(after) <= len(before)+1,
		"%q: selections were %v and are %v", annotation, before, after)
	if !isJSONForm(annotation) && (strings.Contains(a.Name, ".") || len(a.Name) > 63) {
		return // the short form can't name it: the whole is JSON now
	}
	kept := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(annotation, " \t\r\n"), "]"), " \t\r\n")
	must.True(t, len(before) == 0 || strings.HasPrefix(got, kept), "%q did not stay to the letter: %q", annotation, got)
	if again, err := AddNetwork(got, "pod-ns", a); err != nil || again != got {
		t.Fatalf("added again: %q, %v; before %q", again, err, got)
	}
}

func mustParse(t must.TB, annotation string) []Attachment {
	selections, err := ParseSelections(annotation, "pod-ns")
	must.True(t, err == nil, "%q: %v", annotation, err)
	return selections
}

// genAnnotation draws a networks annotation in either form, well formed.
func genAnnotation(t *rapid.T) string {
	names := rapid.SampledFrom([]string{"", "lhnet1", "lhnet2", "net1", "eth1"})
	var short []string
	var elements []map[string]any
	for range rapid.IntRange(0, 4).Draw(t, "selections") {
		a := Attachment{Network{genLabel.Draw(t, "ns"), genLabel.Draw(t, "nad")}, names.Draw(t, "interface")}
		element := map[string]any{"name": a.Name, "namespace": a.Namespace, "future": rapid.String().Draw(t, "future")}
		item := a.Network.String()
		if rapid.Bool().Draw(t, "in the pod's namespace") {
			delete(element, "namespace")
			item = a.Name
		}
		if a.Interface != "" {
			element["interface"] = a.Interface
			item += "@" + a.Interface
		}
		elements = append(elements, element)
		short = append(short, rapid.SampledFrom([]string{"", " "}).Draw(t, "space")+item)
	}
	if rapid.Bool().Draw(t, "short form") || len(elements) == 0 {
		return strings.Join(short, ",")
	}
	data, err := json.Marshal(elements)
	must.Do(t, err)
	return string(data) + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
