package catalog

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// malformed is the error of Definition.Normalize: the form of the setting, and a detail if the form is not clear enough.
type malformed struct{ form, detail string }

func (m malformed) Error() string {
	if m.detail == "" {
		return m.form
	}
	return m.form + ": " + m.detail
}

// refuse returns a malformed with a formatted detail.
func refuse(form, detail string, args ...any) error {
	return malformed{form, fmt.Sprintf(detail, args...)}
}

// detailOf returns the detail of a malformed, else the whole error.
func detailOf(err error) string {
	var m malformed
	if errors.As(err, &m) {
		return m.detail
	}
	return err.Error()
}

const boolForm = `must be "true" or "false"`

// normalizeBool accepts what Longhorn accepts (strconv.ParseBool).
func normalizeBool(value string) (string, error) {
	on, err := BoolValue(value)
	if err != nil {
		return "", err
	}
	return strconv.FormatBool(on), nil
}

// IsOn reports whether a switch is on. A malformed value is off.
func IsOn(value string) bool {
	on, err := BoolValue(value)
	return err == nil && on
}

func BoolValue(value string) (bool, error) {
	on, err := strconv.ParseBool(strings.TrimSpace(value))
	if err != nil {
		return false, malformed{form: boolForm}
	}
	return on, nil
}

// unbounded is the maximum of numbers without a maximum in Longhorn. Fields of pods are int32.
const unbounded = math.MaxInt32

// wholeNumber normalizes whole numbers from least to most: "05" and "+5" are "5".
func wholeNumber(least, most int64) func(string) (string, error) {
	form := wholeNumberForm(least, most)
	return func(value string) (string, error) {
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if err != nil || n < least || n > most {
			return "", malformed{form: form}
		}
		return strconv.FormatInt(n, 10), nil
	}
}

func wholeNumberForm(least, most int64) string {
	return fmt.Sprintf("must be a whole number from %d to %d", least, most)
}

// number normalizes decimal numbers from 0 to most: "012.50" and "1.25e1" are "12.5".
// NaN, Inf and hexadecimal numbers, which strconv accepts, are refused.
func number(most float64) func(string) (string, error) {
	form := fmt.Sprintf("must be a number from 0 to %g", most)
	return func(value string) (string, error) {
		value = strings.TrimSpace(value)
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || strings.Trim(value, "0123456789.eE+-") != "" || !(f >= 0 && f <= most) {
			return "", malformed{form: form}
		}
		return strconv.FormatFloat(math.Abs(f), 'f', -1, 64), nil // no "-0"
	}
}

// quantityForm refuses negative and long numbers: Kubernetes' parser takes half a minute for 1e1000000, and accepts it.
var quantityForm = regexp.MustCompile(`^\+?[0-9]{0,19}(\.[0-9]{0,9})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

func ParseQuantity(text string) (resource.Quantity, bool) {
	if !quantityForm.MatchString(text) {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil && q.CmpInt64(math.MaxInt64) < 0
}

// canonical is a quantity as the API server stores it in pods, rounded up to a thousandth.
// Equal quantities have equal text: 1024Mi and 1Gi, 0.1 and 100m.
func canonical(name corev1.ResourceName, q resource.Quantity) resource.Quantity {
	q = q.DeepCopy()
	q.RoundUp(resource.Milli)
	format := resource.BinarySI
	if name == corev1.ResourceCPU {
		format = resource.DecimalSI
	}
	return *resource.NewDecimalQuantity(*q.AsDec(), format)
}

func quantityTexts(resources corev1.ResourceList) map[string]string {
	texts := map[string]string{}
	for name, q := range resources {
		q = canonical(name, q)
		texts[string(name)] = q.String()
	}
	return texts
}
