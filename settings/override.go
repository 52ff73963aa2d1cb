package settings

import (
	"encoding/json"
	"time"
)

// Breaking the glass: a gate is overridden for one value of one setting by
// somebody who gives a reason and whom RBAC allows it.
const (
	// OverrideAnnotation on a setting asks for its gate to be overridden; its value is the reason.
	OverrideAnnotation = "fairlead.io/override-gate"
	// OverriddenAnnotation is written by Fairlead's webhook when it lets an
	// override pass: an Override as JSON. It stays for the record.
	OverriddenAnnotation = "fairlead.io/gate-overridden"
	// OverrideVerb on settings.fairlead.io is what RBAC must allow, for the
	// settings of either group.
	OverrideVerb = "override-gate"
)

// Override is who overrode a gate, why, and for which value.
type Override struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	Value  string    `json:"value"`
	At     time.Time `json:"at"`
}

// ReadOverride returns the override that holds for a value. An annotation alone
// overrides nothing, nor does one that was let pass for another value or reason.
func ReadOverride(annotations map[string]string, value string) (Override, bool) {
	reason, asked := annotations[OverrideAnnotation]
	record, passed := annotations[OverriddenAnnotation]
	if !asked || !passed {
		return Override{}, false
	}
	var o Override
	if err := json.Unmarshal([]byte(record), &o); err != nil {
		return Override{}, false
	}
	return o, o.Reason == reason && reason != "" && o.Value == value
}

// OverrideLifetime is how long an override holds at most. What keeps the value
// from being applied, like a node that is down, may last for weeks; who broke
// the glass meant the pods of that day.
const OverrideLifetime = 24 * time.Hour

// Expired tells whether the override is too old to hold; one of no known time is.
func (o Override) Expired(now time.Time) bool { return !now.Before(o.Until()) }

// Until is when the override ends at the latest.
func (o Override) Until() time.Time { return o.At.Add(OverrideLifetime) }

// Text of an override, as OverriddenAnnotation keeps it.
func (o Override) Text() string {
	text, err := json.Marshal(o)
	if err != nil {
		return "" // it is made of strings and a time of this era
	}
	return string(text)
}
