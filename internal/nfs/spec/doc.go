// Package spec reads an NFSService: its spec, with all problems at once, and the
// state that its status records. Admission, the controller and the command line
// use the same functions, so that they cannot disagree.
//
// It is pure: values in, values and problems out.
package spec
