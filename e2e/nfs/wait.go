package nfs

import (
	"context"
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// waitTimeout is long for a busy machine: what a test promises is measured apart.
const waitTimeout = 2 * time.Minute

func (c *Cluster) wait(ctx context.Context, done func(context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, waitTimeout, true, done)
}

func duration(text string) *metav1.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err) // a constant of the tests
	}
	return &metav1.Duration{Duration: d}
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
