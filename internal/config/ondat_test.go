package config

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-io/fairlead/internal/testkit/must"
)

func TestOndatDefaultsAreTheReleasedOnes(t *testing.T) {
	c, err := Parse([]byte(head))
	must.True(t, err == nil && c.Ondat == nil, "got %+v, %v", c, err)
	if c, err = Parse([]byte(head + "ondat: {}\n")); err != nil {
		t.Fatal(err)
	}
	want := Ondat{APIEndpoint: "storageos", APISecretPath: "/etc/storageos/secrets/api", APIPollInterval: metav1.Duration{Duration: 5 * time.Second}, ServiceName: "PVC"}
	must.Equal(t, *c.Ondat, want)
}

func TestOndatProblemsAreFoundAtOnce(t *testing.T) {
	_, err := Parse([]byte(head + `ondat:
  apiEndpoint: http://user:geheim@storageos
  apiSecretPath: secrets
  caFile: ca.crt
  apiPollInterval: 1ms
  serviceName: pvc
`))
	must.True(t, err != nil, "no error")
	for _, name := range []string{"apiEndpoint", "apiSecretPath", "caFile", "apiPollInterval", "serviceName"} {
		must.True(t, strings.Contains(err.Error(), "ondat."+name), "%s is not among %v", name, err)
	}
	must.True(t, !strings.Contains(err.Error(), "geheim"), "the password is shown: %v", err)
}
