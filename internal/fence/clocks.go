package fence

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// since is the age of a time that Fairlead recorded. A time in the future came from another leader's clock, so its age
// is unknown.
func (f Facts) since(t *metav1.Time) (age time.Duration, known bool) {
	if t == nil || t.After(f.Now) {
		return 0, false
	}
	return f.Now.Sub(t.Time), true
}

// elapsed is how long ago a recorded time was at least. The clock of an earlier leader may be hours off, so no more time
// counts than this controller has led.
func (f Facts) elapsed(t *metav1.Time) (age time.Duration, known bool) {
	age, known = f.since(t)
	return min(age, f.Now.Sub(f.Started)), known
}
