// Package definition reads an NFSService: its spec, with all problems at once, and the
// state in its status. Admission, the controller and the command line use the same
// functions, and so agree.
//
// It is pure: values in, values and problems out.
package definition
