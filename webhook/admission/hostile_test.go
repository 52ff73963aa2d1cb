package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/fairlead-io/fairlead/internal/longhorn"
	"github.com/fairlead-io/fairlead/internal/multus"
	"github.com/fairlead-io/fairlead/internal/settings/rollout"
	"github.com/fairlead-io/fairlead/mutators"
	"github.com/fairlead-io/fairlead/validators"
)

// hostileReview has many small values in a part that a rule decodes.
type hostileReview struct {
	handler       http.Handler
	before, after string
	value         func(int) string
}

func (h hostileReview) review(values int) string {
	list := make([]string, values)
	for i := range list {
		list[i] = h.value(i)
	}
	return podReview(h.before + strings.Join(list, ",") + h.after)
}

type taintedNode struct {
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
}

func hostileReviews() map[string]hostileReview {
	on := multus.Attachment{Network: multus.Network{Namespace: "kube-system", Name: "storage-net"}, Interface: "lhnet1"}
	record, names := rollout.Record{Clients: on, Servers: on}, longhorn.DefaultNames()
	clientPods := podHandler(NewLimit(), func(_ context.Context, r *Request[mutators.ClientPod]) Decision {
		return FromMutation(mutators.MutateClientPod(*r.Object, names, record))
	})
	serverPods := podHandler(NewLimit(), func(_ context.Context, r *Request[mutators.ServerPod]) Decision {
		return FromMutation(mutators.MutateServerPod(*r.Object, names, nil, record))
	})
	nodeFences := podHandler(NewLimit(), func(_ context.Context, r *Request[validators.NodeFence]) Decision {
		return FromVerdict(validators.ValidateNodeFence(*r.Object, r.OldObject, validators.NodeFenceFacts{}), r.Resource, r.Name)
	})
	nfsServices := podHandler(NewLimit(), func(_ context.Context, r *Request[validators.NFSService]) Decision {
		if n := len(r.Object.Spec.Backends); n > 1000 {
			return Forbidden(r.Resource, r.Name, nil, "too many backends", fmt.Sprint(n))
		}
		return FromVerdict(validators.ValidateNFSService(*r.Object, r.OldObject, false), r.Resource, r.Name)
	})
	nodes := podHandler(NewLimit(), func(_ context.Context, _ *Request[taintedNode]) Decision { return Allowed("") })
	empty, text, name := func(int) string { return "{}" }, func(int) string { return `""` }, func(i int) string { return fmt.Sprintf(`"%x":""`, i) }
	return map[string]hostileReview{
		"annotations":  {clientPods, `{"metadata":{"annotations":{`, `}}}`, name},
		"unread names": {clientPods, `{"metadata":{"unread":{`, `}}}`, name},
		"labels":       {serverPods, `{"metadata":{"labels":{`, `}}}`, name},
		"taints":       {nodes, `{"spec":{"taints":[`, `]}}`, empty},
		"finalizers":   {nodeFences, `{"metadata":{"finalizers":[`, `]}}`, text},
		"backends":     {nfsServices, `{"spec":{"backends":[`, `]}}`, empty},
		"slots":        {nfsServices, `{"status":{"slots":[`, `]}}`, empty},
		"health":       {nfsServices, `{"status":{"backends":[`, `]}}`, empty},
		"conditions":   {nfsServices, `{"status":{"conditions":[`, `]}}`, empty},
	}
}
