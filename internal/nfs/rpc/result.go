package rpc

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Finding is what one step of a probe found.
type Finding struct {
	Version Version
	Share   string // "": the version as a whole
	Reason  Reason
	Message string // for people: what is, why, what to do
}

// Result is the outcome of one probe.
type Result struct {
	// Reason is that of the worst finding. Reason.Verdict reports whether it counts as success or failure.
	Reason  Reason
	Message string // of the findings with that reason
	// Findings are in the order of the target's versions and shares; a probe stops where the server stops answering.
	Findings []Finding
	Started  time.Time
	Took     time.Duration
}

// maxMessages keeps the message readable when many shares are gone.
const maxMessages = 3

func summarize(findings []Finding) Result {
	result := Result{Reason: Serving, Findings: findings}
	for _, f := range findings {
		if f.Reason.rank() > result.Reason.rank() {
			result.Reason = f.Reason
		}
	}
	var messages []string
	for _, f := range findings {
		if f.Reason == result.Reason && !slices.Contains(messages, f.Message) {
			messages = append(messages, f.Message)
		}
	}
	if more := len(messages) - maxMessages; more > 0 {
		messages = append(messages[:maxMessages:maxMessages], fmt.Sprintf("and %d more", more))
	}
	result.Message = strings.Join(messages, "; ")
	return result
}
