package config

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problems of a configuration, all of them.
type problems struct{ list field.ErrorList }

// unless adds a problem if the configuration is not ok.
func (p *problems) unless(ok bool, problem *field.Error) {
	if !ok {
		p.list = append(p.list, problem)
	}
}

// invalid adds a problem with a value for each message.
func (p *problems) invalid(path *field.Path, value any, messages ...string) {
	for _, message := range messages {
		p.unless(false, field.Invalid(path, value, message))
	}
}

func (p *problems) number(path *field.Path, value, least, most int, message string) {
	p.unless(least <= value && value <= most, field.Invalid(path, value, message))
}

func (p *problems) atLeast(path *field.Path, d metav1.Duration, least time.Duration) {
	message := "must not be negative"
	if least > 0 {
		message = "must be at least " + least.String()
	}
	p.unless(d.Duration >= least, field.Invalid(path, d.Duration.String(), message))
}

// once refuses a name that an earlier entry of the list has.
func (p *problems) once(path *field.Path, name string, earlier map[string]bool) {
	p.unless(!earlier[name], field.Duplicate(path, name))
	earlier[name] = true
}

func (p *problems) namespace(path *field.Path, name string) {
	p.invalid(path, name, validation.IsDNS1123Label(name)...)
}

func oneOf[T ~string](p *problems, path *field.Path, value T, allowed ...T) {
	p.unless(slices.Contains(allowed, value), field.NotSupported(path, value, allowed))
}

// parsed adds the error of a text that can't be parsed.
func (p *problems) parsed(path *field.Path, text string, err error) {
	if err != nil {
		p.invalid(path, text, err.Error())
	}
}
