package nfs

import (
	"errors"
	"fmt"
)

// Problem is one thing that is wrong with a value that a user wrote.
type Problem struct {
	// Field is the path of the value, such as spec.backends[2].address.
	Field string
	// Message says what is wrong and what to write instead.
	Message string
}

// Error is the path and the message.
func (p Problem) Error() string { return p.Field + ": " + p.Message }

// Problems are all problems of one input. Functions that read input return all of them, not the first.
type Problems []Problem

// Add appends a problem.
func (p *Problems) Add(field, format string, args ...any) {
	*p = append(*p, Problem{Field: field, Message: fmt.Sprintf(format, args...)})
}

// Err is nil where there are no problems, else one error with a line for each.
func (p Problems) Err() error {
	errs := make([]error, len(p))
	for i := range p {
		errs[i] = p[i]
	}
	return errors.Join(errs...)
}

// Index is the path of an element of a list.
func Index(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
