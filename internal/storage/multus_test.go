package storage

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var (
	netA = Attachment{Network{"kube-system", "a"}, "lhnet1"}
	netB = Attachment{Network{"kube-system", "b"}, "lhnet2"}
)

func TestParseSelections(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want       []Attachment
		refused    bool
	}{
		"empty":                          {annotation: ""},
		"blank":                          {annotation: " \n"},
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
		"JSON string":                    {annotation: `"x"`, refused: true},
		"JSON cut off":                   {annotation: `[{"name": "x"}`, refused: true},
		"JSON with more after it":        {annotation: `[{"name": "x"}] x`, refused: true},
		"JSON name of the wrong type":    {annotation: `[{"name": 1}]`, refused: true},
		"short with an empty item":       {annotation: "x,,y", refused: true},
		"short with a comma at its end":  {annotation: "x,", refused: true},
		"short with an empty interface":  {annotation: "x@", refused: true},
		"short with two interfaces":      {annotation: "x@a@b", refused: true},
		"short with a long interface":    {annotation: "x@sixteen-is-a-lot", refused: true},
		"short with an empty namespace":  {annotation: "/x", refused: true},
		"short with an empty name":       {annotation: "ns/", refused: true},
		"short with two slashes":         {annotation: "a/b/c", refused: true},
		"short in upper case":            {annotation: "X", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSelections(test.annotation, "pod-ns")
			if test.refused {
				if !errors.Is(err, ErrNotASelection) || got != nil {
					t.Fatalf("got %+v, %v", got, err)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, test.want)
			}
		})
	}
}

func TestAddNetwork(t *testing.T) {
	// Longhorn's own text, to the letter: it compares the annotations that it manages as strings.
	const longhornA = `{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}`
	for name, test := range map[string]struct {
		annotation string
		add        Attachment
		want       string
		problem    string
	}{
		"to none, in Longhorn's text": {annotation: "", add: netA, want: "[" + longhornA + "]"},
		"to blank":                    {annotation: " ", add: netA, want: "[" + longhornA + "]"},
		"to an empty list":            {annotation: "[ ]", add: netA, want: "[" + longhornA + "]"},
		"to JSON, what is there to the letter": {
			annotation: `[ {"name":"x",  "ips":["10.0.0.1/24"], "future": {"é":1e2}} ]`, add: netA,
			want: `[ {"name":"x",  "ips":["10.0.0.1/24"], "future": {"é":1e2}} , ` + longhornA + `]`,
		},
		"to JSON over several lines":         {annotation: "[\n {\"name\": \"x\"}\n]\n", add: netA, want: "[\n {\"name\": \"x\"}\n, " + longhornA + "]"},
		"to the short form":                  {annotation: "x, ns/y@net2", add: netA, want: "x, ns/y@net2,kube-system/a@lhnet1"},
		"there already, JSON":                {annotation: `[{"interface":"lhnet1","name":"a","namespace":"kube-system"}]`, add: netA, want: `[{"interface":"lhnet1","name":"a","namespace":"kube-system"}]`},
		"there already, short":               {annotation: " kube-system/a@lhnet1", add: netA, want: " kube-system/a@lhnet1"},
		"there already, pod's own namespace": {annotation: "p@lhnet1", add: Attachment{Network{"pod-ns", "p"}, "lhnet1"}, want: "p@lhnet1"},
		"the network on another interface":   {annotation: "kube-system/a@net1", add: netA, want: "kube-system/a@net1,kube-system/a@lhnet1"},
		"the cluster network adds nothing":   {annotation: "x", want: "x"},
		"clash, short": {
			annotation: "kube-system/b@lhnet1", add: netA, want: "kube-system/b@lhnet1",
			problem: "interface lhnet1 is already asked for by network kube-system/b",
		},
		"clash, JSON": {
			annotation: `[{"name": "x", "interface": "lhnet1"}]`, add: netA, want: `[{"name": "x", "interface": "lhnet1"}]`,
			problem: "interface lhnet1 is already asked for by network pod-ns/x",
		},
		"unreadable": {
			annotation: `[{`, add: netA, want: `[{`,
			problem: "not a network selection that Multus understands: unexpected end of JSON input",
		},
		"unreadable, nothing to add": {annotation: "X", want: "X", problem: `not a network selection that Multus understands: "X"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := AddNetwork(test.annotation, "pod-ns", test.add)
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if problem := text(err); problem != test.problem {
				t.Errorf("got error %q, want %q", problem, test.problem)
			}
		})
	}
}

func TestAddNetworkTellsWhoHoldsTheInterface(t *testing.T) {
	_, err := AddNetwork("kube-system/b@lhnet1", "pod-ns", netA)
	var clash *ClashError
	if !errors.As(err, &clash) || *clash != (ClashError{"lhnet1", Network{"kube-system", "b"}}) {
		t.Fatalf("got %v", err)
	}
}

func TestManagedAttachment(t *testing.T) {
	for name, test := range map[string]struct {
		annotation string
		want       Attachment
		refused    bool
	}{
		"none":             {},
		"only foreign":     {annotation: "x,kube-system/a@net1"},
		"on one of ours":   {annotation: "x, kube-system/b@lhnet2", want: netB},
		"the first of two": {annotation: "kube-system/b@lhnet2,kube-system/a@lhnet1", want: netB},
		"unreadable":       {annotation: "[", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ManagedAttachment(test.annotation, "pod-ns", Longhorn().Interfaces())
			if got != test.want || errors.Is(err, ErrNotASelection) != test.refused {
				t.Fatalf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestSetManaged(t *testing.T) {
	const jsonB = `{"namespace": "kube-system", "name": "b", "interface": "lhnet2"}`
	for name, test := range map[string]struct {
		annotation string
		set        Attachment
		want       string
		refused    bool
	}{
		"none to one":              {set: netB, want: "[" + jsonB + "]"},
		"none to none":             {annotation: "x, y", want: "x, y"},
		"one to none":              {annotation: `[{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}]`, want: ""},
		"one to none, short":       {annotation: "kube-system/a@lhnet1", want: ""},
		"one to another":           {annotation: `[{"namespace": "kube-system", "name": "a", "interface": "lhnet1"}]`, set: netB, want: "[" + jsonB + "]"},
		"one to another, short":    {annotation: "x,kube-system/a@lhnet1,y", set: netB, want: "x,y,kube-system/b@lhnet2"},
		"same interface, another":  {annotation: "kube-system/x@lhnet2", set: netB, want: "[" + jsonB + "]"},
		"two to one of them":       {annotation: "kube-system/a@lhnet1,x,kube-system/b@lhnet2", set: netB, want: "x,kube-system/b@lhnet2"},
		"as it is":                 {annotation: " kube-system/b@lhnet2 , x", set: netB, want: " kube-system/b@lhnet2 , x"},
		"fields of others survive": {annotation: `[{"name":"x","future":{"a": 1}}, {"name":"a","namespace":"kube-system","interface":"lhnet1"}]`, set: netB, want: `[{"name":"x","future":{"a": 1}}, ` + jsonB + "]"},
		"unreadable":               {annotation: "[", set: netB, want: "[", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := SetManaged(test.annotation, "pod-ns", Longhorn().Interfaces(), test.set)
			if got != test.want || errors.Is(err, ErrNotASelection) != test.refused {
				t.Fatalf("got  %s, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

func TestAddNetworkOnlyAddsAndIsIdempotent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkAddNetwork(t, genAnnotation(t), genAttachment(t))
	})
}

func TestSetManagedLeavesOneAndIsIdempotent(t *testing.T) {
	interfaces := Longhorn().Interfaces()
	rapid.Check(t, func(t *rapid.T) {
		annotation := genAnnotation(t)
		want := rapid.SampledFrom([]Attachment{{}, netA, netB}).Draw(t, "set")
		once, err := SetManaged(annotation, "pod-ns", interfaces, want)
		if err != nil {
			t.Fatalf("%q: %v", annotation, err)
		}
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
		if want.IsZero() != (len(managed) == 0) || slices.ContainsFunc(managed, func(a Attachment) bool { return a != want }) {
			t.Fatalf("%q: got %v, want %s", annotation, managed, want)
		}
		kept := slices.DeleteFunc(mustParse(t, annotation), func(a Attachment) bool { return slices.Contains(interfaces, a.Interface) })
		if !slices.Equal(foreign, kept) {
			t.Fatalf("%q: foreign selections became %v", annotation, foreign)
		}
	})
}

func FuzzParseSelections(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		selections, err := ParseSelections(annotation, "pod-ns")
		if err != nil && (!errors.Is(err, ErrNotASelection) || selections != nil) {
			t.Fatalf("got %v, %v", selections, err)
		}
		for _, s := range selections {
			if s.Name == "" || s.Namespace == "" {
				t.Fatalf("a network without a name: %+v", s)
			}
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

type fataler interface {
	Fatalf(format string, args ...any)
}

// checkAddNetwork holds what AddNetwork promises: it adds, takes nothing away
// and does nothing the second time; refused, it changes nothing.
func checkAddNetwork(t fataler, annotation string, a Attachment) {
	got, err := AddNetwork(annotation, "pod-ns", a)
	if err != nil {
		if got != annotation {
			t.Fatalf("%q: refused with %v, and yet changed to %q", annotation, err, got)
		}
		return
	}
	before, after := mustParse(t, annotation), mustParse(t, got)
	if !a.IsZero() && !slices.Contains(after, a) {
		t.Fatalf("%q: %q does not ask for %s", annotation, got, a)
	}
	if len(after) < len(before) || !slices.Equal(after[:len(before)], before) || len(after) > len(before)+1 {
		t.Fatalf("%q: selections were %v and are %v", annotation, before, after)
	}
	if !isJSONForm(annotation) && (strings.Contains(a.Name, ".") || len(a.Name) > 63) {
		return // the short form can't name it: the whole is JSON now
	}
	if kept := strings.TrimRight(strings.TrimSuffix(strings.TrimRight(annotation, " \t\r\n"), "]"), " \t\r\n"); len(before) > 0 && !strings.HasPrefix(got, kept) {
		t.Fatalf("%q did not stay to the letter: %q", annotation, got)
	}
	if again, err := AddNetwork(got, "pod-ns", a); err != nil || again != got {
		t.Fatalf("added again: %q, %v; before %q", again, err, got)
	}
}

func mustParse(t fataler, annotation string) []Attachment {
	selections, err := ParseSelections(annotation, "pod-ns")
	if err != nil {
		t.Fatalf("%q: %v", annotation, err)
	}
	return selections
}

// genAnnotation draws a networks annotation in either form, well formed.
func genAnnotation(t *rapid.T) string {
	interfaces := rapid.SampledFrom([]string{"", "lhnet1", "lhnet2", "net1", "eth1"})
	var short []string
	var elements []map[string]any
	for range rapid.IntRange(0, 4).Draw(t, "selections") {
		a := Attachment{Network{genLabel.Draw(t, "ns"), genLabel.Draw(t, "nad")}, interfaces.Draw(t, "interface")}
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
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(data) + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "end")
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
