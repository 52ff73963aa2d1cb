package options

import "testing"

func TestUnknownOptionsAreRefusedUnlessSloppy(t *testing.T) {
	for text, want := range map[string]int{"hard": 0, "x-foo": 0, "nconect=4,newer": 2, "newer,sloppy": 0} {
		parsed, problems := Parse("spec.mountOptions", []string{text})
		if problems = append(problems, parsed.CheckKnown("spec.mountOptions")...); len(problems) != want {
			t.Errorf("%s: got %v", text, problems)
		}
	}
}
