package main

import (
	"fmt"

	"github.com/fairlead-io/fairlead/bench/sample"
	"github.com/fairlead-io/fairlead/internal/multus"
)

// Sizes of reviews in bytes: a client pod with a common number of environment
// variables, and a client pod with far too many.
const (
	common = 12_400
	large  = 60_000
)

// reviewCase is one kind of review and its expected result.
type reviewCase struct {
	name string
	size int
	// network that clients are on; the zero Attachment is the cluster network.
	network multus.Attachment
	// asked is the pod's networks annotation before admission.
	asked   string
	patched bool
}

// The cases, all of one kind of pod. The targets are for match.
var (
	match     = reviewCase{name: "12 KB Pod", size: common, network: network, patched: true}
	bigMatch  = reviewCase{name: "60 KB Pod", size: large, network: network, patched: true}
	noNetwork = reviewCase{name: "no match: no network applied", size: common}
	already   = reviewCase{
		name: "no match: on the network already", size: common, network: network,
		asked: `[{"namespace": "kube-system", "name": "storage-net", "interface": "lhnet2"}]`, // as Longhorn writes it
	}
)

func (c reviewCase) review() ([]byte, error) {
	var annotations map[string]string
	if c.asked != "" {
		annotations = map[string]string{multus.NetworksAnnotation: c.asked}
	}
	return sample.ClientPodReview(c.size, annotations)
}

// calls are the case's calls to both sides, checked to be equal work.
func (c reviewCase) calls() (ours, theirs *call, err error) {
	review, err := c.review()
	if err != nil {
		return nil, nil, err
	}
	for side, target := range map[string]**call{fairlead: &ours, controllerRuntime: &theirs} {
		handler, err := newHandler(side, c.network)
		if err != nil {
			return nil, nil, err
		}
		if *target, err = newCall(handler, review); err != nil {
			return nil, nil, err
		}
	}
	if err := checkEqual(ours, theirs, c.patched); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", c.name, err)
	}
	return ours, theirs, nil
}
