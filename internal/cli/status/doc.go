// Package status is `fairlead status` and `fairlead volumes`: settings in effect, what waits, and which
// data paths are wrong, on one screen.
package status
