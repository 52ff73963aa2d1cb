package sandbox

import (
	"fmt"
	"strings"
	"testing"
)

func TestWritesSayWhoChangedWhat(t *testing.T) {
	const first = `{"verb":"create","user":{"username":"system:serviceaccount:a:b"},"objectRef":{"resource":"pods","namespace":"n"},"responseStatus":{"code":201},"responseObject":{"metadata":{"name":"made-up","resourceVersion":"1"}}}
{"verb":"patch","user":{"username":"admin"},"objectRef":{"resource":"pods","subresource":"status","namespace":"n","name":"made-up"},"responseStatus":{"code":200},"responseObject":{"metadata":{"name":"made-up","resourceVersion":"2"}}}
{"verb":"update","user":{"username":"admin"},"objectRef":{"resource":"pods","namespace":"n","name":"made-up"},"responseStatus":{"code":200},"responseObject":{"metadata":{"name":"made-up","resourceVersion":"2"}}}
{"verb":"delete","user":{"username":"admin"},"objectRef":{"resource":"pods","namespace":"n","name":"made-up"},"responseStatus":{"code":403,"message":"no"},"responseObject":{"kind":"Status","metadata":{}}}
{"verb":"create","requestURI":"/x?dryRun=All","user":{"username":"admin"},"objectRef":{"resource":"pods"},"responseStatus":{"code":201}}
{"verb":"watch","stage":"ResponseStarted","user":{"username":"sa"},"objectRef":{"resource":"pods"}}
{"verb":"watch","stage":"ResponseComplete","user":{"username":"sa"},"objectRef":{"resource":"pods"}}
{"verb":"pat`
	var r record
	if _, err := r.read(strings.NewReader(first)); err != nil {
		t.Fatal(err)
	}
	// The half of a line is read again, once it is whole.
	writes, err := r.read(strings.NewReader(first + `ch","user":{"username":"late"},"objectRef":{"resource":"nodes","name":"n"},"responseStatus":{"code":200}}`))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range writes {
		got = append(got, fmt.Sprintf("%s %s %s %s %v%s", w.Writer(), w.Verb, w.Resource, w.Object(), w.Changed, w.Message))
	}
	want := []string{
		"b create pods pods/made-up true", "admin patch pods/status pods/made-up true",
		"admin update pods pods/made-up false", "admin delete pods pods/made-up falseno", "sa watch pods pods/ true", "late patch nodes nodes/n true",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the writes are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
