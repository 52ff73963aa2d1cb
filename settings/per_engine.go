package settings

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// perEngine is the grammar of the settings that Longhorn 1.10 and later keeps
// for each data engine: one value for all, or a JSON object of strings.
// Source: longhorn-manager types/setting.go, DataEngineSpecific.
type perEngine struct {
	// engines that the setting is about.
	engines []string
	// one normalizes the value of one engine. What it returns as an error is a malformed.
	one func(string) (string, error)
	// form of one value; each is an example of one for each engine.
	form, each string
}

// normalize returns one value as one, and an object as compact JSON with its
// engines in order: before 1.10 Longhorn takes no object, so none is made up.
func (p perEngine) normalize(value string) (string, error) {
	one, values, err := p.parse(value)
	if err != nil || values == nil {
		return one, err
	}
	text, err := jsonv2.Marshal(values, jsonv2.Deterministic(true))
	return string(text), err
}

// of returns the value for one engine; ok is false where there is none.
func (p perEngine) of(value, engine string) (text string, ok bool) {
	one, values, err := p.parse(value)
	if err != nil || !slices.Contains(p.engines, engine) {
		return "", false
	}
	if values == nil {
		return one, true
	}
	return values[engine], true
}

// wants is a Definition.Wants for the instance managers of one engine.
func (p perEngine) wants(engine string) func(string, Component, Nodes) (string, bool) {
	return wants(instanceManagerOf(engine), func(value string) (string, error) {
		text, ok := p.of(value, engine)
		if !ok {
			return "", p.refuse("")
		}
		return text, nil
	})
}

func (p perEngine) parse(value string) (one string, values map[string]string, err error) {
	if value = strings.TrimSpace(value); !strings.HasPrefix(value, "{") {
		if one, err = p.one(value); err != nil {
			return "", nil, p.refuse(detailOf(err))
		}
		return one, nil, nil
	}
	var object map[string]any
	if err := jsonv2.Unmarshal([]byte(value), &object); errors.Is(err, jsontext.ErrDuplicateName) {
		return "", nil, p.refuse("a data engine is there twice")
	} else if err != nil {
		return "", nil, p.refuse("not a JSON object")
	}
	values = map[string]string{}
	for _, engine := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(p.engines, engine) {
			return "", nil, p.refuse(fmt.Sprintf("data engine %q must be %s", engine, strings.Join(p.engines, " or ")))
		}
		text, isString := object[engine].(string)
		if !isString {
			return "", nil, p.refuse("the value of " + engine + " must be in quotes")
		}
		if values[engine], err = p.one(text); err != nil {
			detail := fmt.Sprintf("%s is %q", engine, text)
			if more := detailOf(err); more != "" {
				detail += ", " + more
			}
			return "", nil, p.refuse(detail)
		}
	}
	// Longhorn takes all of them or none.
	for _, engine := range p.engines {
		if _, there := values[engine]; !there {
			return "", nil, p.refuse("data engine " + engine + " is missing")
		}
	}
	return "", values, nil
}

func (p perEngine) refuse(detail string) error {
	return malformed{p.form + ", or one for each data engine as " + p.each, detail}
}
