package catalog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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
