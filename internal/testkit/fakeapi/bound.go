package fakeapi

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mustBeBound panics at a write that would also be done to an object that another party has changed or replaced since it
// was read. So each test of a controller finds such writes.
func (c *Client) mustBeBound(w Write, isBound bool) {
	if !isBound && !slices.Contains(c.Unbound, w.Verb+" "+KindOf(w.Object)) {
		panic(fmt.Sprintf("%s has neither the UID nor the resourceVersion of what was read: it is done whatever another party has written since", w))
	}
}

func isBoundDelete(options []client.DeleteOption) bool {
	p := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
	return p != nil && (p.UID != nil || p.ResourceVersion != nil)
}

func isBoundPatch(o client.Object, p client.Patch) bool {
	data, err := p.Data(o)
	if err != nil {
		return true // the write fails
	}
	if p.Type() == types.JSONPatchType {
		var operations []struct{ Op string }
		if json.Unmarshal(data, &operations) != nil {
			return true
		}
		for _, operation := range operations {
			if operation.Op == "test" {
				return true
			}
		}
		return false
	}
	var content struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	return json.Unmarshal(data, &content) != nil || content.Metadata.UID != "" || content.Metadata.ResourceVersion != ""
}
