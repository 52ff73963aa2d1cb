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
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	want := Ondat{
		APIEndpoint: "storageos", APISecretPath: "/etc/storageos/secrets/api",
		APIPollInterval: seconds(5), CacheExpiryInterval: seconds(60), APIRefreshInterval: seconds(60), APIRetryInterval: seconds(5), APITimeout: seconds(10),
		K8sCreatePollInterval: seconds(1), K8sCreateWaitDuration: seconds(20), ServiceName: "PVC", Concurrency: 16,
	}
	must.Equal(t, *c.Ondat, want)
}

func TestOndatProblemsAreFoundAtOnce(t *testing.T) {
	_, err := Parse([]byte(head + `ondat:
  apiEndpoint: http://user:geheim@storageos
  apiSecretPath: secrets
  caFile: ca.crt
  apiPollInterval: 1ms
  cacheExpiryInterval: -1s
  apiRefreshInterval: 1ms
  apiRetryInterval: 1ms
  apiTimeout: 1ms
  k8sCreatePollInterval: 1ms
  k8sCreateWaitDuration: 1ms
  serviceName: pvc
  concurrency: -1
`))
	must.True(t, err != nil, "no error")
	for _, name := range []string{
		"apiEndpoint", "apiSecretPath", "caFile", "apiPollInterval", "cacheExpiryInterval", "apiRefreshInterval", "apiRetryInterval", "apiTimeout",
		"k8sCreatePollInterval", "k8sCreateWaitDuration", "serviceName", "concurrency",
	} {
		must.True(t, strings.Contains(err.Error(), "ondat."+name), "%s is not among %v", name, err)
	}
	must.True(t, !strings.Contains(err.Error(), "geheim"), "the password is shown: %v", err)
}
