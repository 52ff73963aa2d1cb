package main

import (
	"cmp"
	"slices"
	"time"
)

// series are the measurements of one sampler, one per round.
type series []time.Duration

// interleave takes a sample of each in turn, round after round, so that other load
// on the machine affects all samplers alike.
func interleave(rounds int, samples ...sampler) ([]series, error) {
	all := make([]series, len(samples))
	for round := range rounds + 1 {
		for i, take := range samples {
			cost, err := take()
			if err != nil {
				return nil, err
			}
			if round > 0 { // the first warms pools and caches
				all[i] = append(all[i], cost)
			}
		}
	}
	return all, nil
}

// ratio is the median of the ratios of all rounds, and their spread.
type ratio struct{ median, least, most float64 }

func (s series) over(other series) ratio {
	ratios := make([]float64, len(s))
	for i := range s {
		ratios[i] = float64(s[i]) / float64(other[i])
	}
	return ratio{median(ratios), slices.Min(ratios), slices.Max(ratios)}
}

func (s series) median() time.Duration { return median(s) }

func median[S ~[]E, E cmp.Ordered](values S) E {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
