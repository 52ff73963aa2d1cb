package catalog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// perEngine is the grammar of the settings that Longhorn 1.10 and later has
// for each data engine: one value for all engines, or a JSON object of strings.
// Source: longhorn-manager types/setting.go, DataEngineSpecific.
type perEngine struct {
	// engines of the setting.
	engines []string
	// one normalizes the value of one engine. Its error is a malformed.
	one func(string) (string, error)
	// form of one value; each is an example of a JSON object.
	form, each string
}

// normalize returns compact JSON with the engines sorted, also for one value for all engines.
func (p perEngine) normalize(value string) (string, error) {
	values, err := p.parse(value)
	if err != nil {
		return "", err
	}
	text, err := jsonv2.Marshal(values, jsonv2.Deterministic(true))
	return string(text), err
}

// of returns the value of one engine; ok is false if the engine has no value.
func (p perEngine) of(value, engine string) (text string, ok bool) {
	values, err := p.parse(value)
	if err != nil {
		return "", false
	}
	text, ok = values[engine]
	return text, ok
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

// parse returns the value of each engine.
func (p perEngine) parse(value string) (map[string]string, error) {
	values := map[string]string{}
	if value = strings.TrimSpace(value); !strings.HasPrefix(value, "{") {
		one, err := p.one(value)
		if err != nil {
			return nil, p.refuse(detailOf(err))
		}
		for _, engine := range p.engines {
			values[engine] = one
		}
		return values, nil
	}
	var object map[string]any
	if err := jsonv2.Unmarshal([]byte(value), &object); errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, p.refuse("a data engine occurs twice")
	} else if err != nil {
		return nil, p.refuse("not a JSON object")
	}
	for _, engine := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(p.engines, engine) {
			return nil, p.refuse(fmt.Sprintf("data engine %q must be %s", engine, strings.Join(p.engines, " or ")))
		}
		text, isString := object[engine].(string)
		if !isString {
			return nil, p.refuse("the value of " + engine + " must be in quotes")
		}
		var err error
		if values[engine], err = p.one(text); err != nil {
			detail := fmt.Sprintf("%s is %q", engine, text)
			if more := detailOf(err); more != "" {
				detail += ", " + more
			}
			return nil, p.refuse(detail)
		}
	}
	// Longhorn refuses an object without all engines.
	for _, engine := range p.engines {
		if _, ok := values[engine]; !ok {
			return nil, p.refuse("data engine " + engine + " is missing")
		}
	}
	return values, nil
}

func (p perEngine) refuse(detail string) error { return malformed{p.allowed(), detail} }

// allowed is Definition.Form.
func (p perEngine) allowed() string { return p.form + ", or one for each data engine as " + p.each }
