package conformance

import "context"

// Check is one requirement.
type Check struct {
	Name string
	// Why it matters to a cluster.
	Why string
	// Run returns what was observed, or an error if the requirement is not met.
	Run func(context.Context, Webhook) (observed string, err error)
}

// Result of a check.
type Result struct {
	Check
	Observed string
	Err      error
}

// Checks are all requirements, in the order in which they are reported.
func Checks() []Check {
	return []Check{
		{"answers with the request's UID", "the API server refuses an answer with another UID", echoesUID},
		{"answers as AdmissionReview v1", "the API server refuses other versions", answersV1},
		{"ignores unknown fields", "a newer API server sends more fields", ignoresUnknownFields},
		{"does not allow what it can't read", "an empty or malformed review must not be an approval", refusesMalformed},
		{"does not allow a kind that it is not for", "a wrong registration must be noticed", refusesWrongKind},
		{"does not trust duplicate fields", "two parsers may read two different requests", refusesDuplicates},
		{"limits the size of a request", "a large body must not take the memory of all", limitsSize},
		{"survives compressed bodies", "the API server sends none; they may hide a large body", survivesGzip},
		{"serves POST only", "nothing else is admission", servesPostOnly},
		{"answers others while a body is slow", "one slow sender must not stop admission", servesBesideSlowBody},
		{"answers 100 requests at once", "a restart of a node sends many, over HTTP/2 as streams of one connection if the webhook speaks it", answersManyAtOnce},
		{"survives cancelled requests", "the API server cancels at its timeout", survivesCancelled},
		{"refuses with a reason", "the user reads status.message", refusesWithReason},
		{"sends patches that apply", "a patch that does not apply fails the request", patchApplies},
		{"sends no patch that changes nothing", "each patch costs the API server a decoding", patchIsMinimal},
		{"changes nothing the second time", "reinvocation must settle", patchIsIdempotent},
		{"answers the same to the same request", "retries must not change the outcome", isDeterministic},
		{"answers the same to a dry run", "kubectl diff must show the truth", dryRunIsEqual},
	}
}

// Run runs all checks.
func Run(ctx context.Context, w Webhook) []Result {
	var results []Result
	for _, c := range Checks() {
		observed, err := c.Run(ctx, w)
		results = append(results, Result{c, observed, err})
	}
	return results
}
