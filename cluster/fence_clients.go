package cluster

import (
	"context"

	"github.com/fairlead-io/fairlead/fence"
)

// AskStorage asks the storage itself about a node that may be fenced. The error is about what was not answered,
// and so is not checked.
type AskStorage func(context.Context, fence.Facts) (fence.Report, error)
