package sandbox

import (
	"slices"
	"strings"
	"testing"
)

func TestARequestCountsOnceInTheRecord(t *testing.T) {
	const record = `{"auditID":"1","stage":"ResponseStarted","verb":"watch","user":{"username":"sa"},"objectRef":{"resource":"pods"}}
{"auditID":"2","stage":"ResponseComplete","verb":"create","user":{"username":"sa"},"objectRef":{"resource":"pods","subresource":"eviction"}}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","user":{"username":"sa"},"objectRef":{"resource":"pods"}}
{"auditID":"3","stage":"ResponseComplete","verb":"get","user":{"username":"sa"}}
{"auditID":"4","sta`
	got, err := parseAudit(strings.NewReader(record))
	want := []Request{{"sa", "watch", "pods"}, {"sa", "create", "pods/eviction"}, {"sa", "get", ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("the requests are %v, %v; want %v", got, err, want)
	}
	if got, err := parseAudit(strings.NewReader("no record")); err == nil {
		t.Errorf("what is no record is read as %v", got)
	}
}
