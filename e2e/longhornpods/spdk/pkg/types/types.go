// Package types has names of the v2 data engine.
package types

type Mode string

const (
	ModeWO  = Mode("WO")
	ModeRW  = Mode("RW")
	ModeERR = Mode("ERR")

	ProgressStateInProgress = "in_progress"
)
