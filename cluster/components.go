package cluster

import (
	"context"

	"github.com/fairlead-io/fairlead/settings"
)

// Components gathers what settings are applied to.
func (r *Reader) Components(context.Context) ([]settings.Component, error) { return nil, nil }

// Nodes gathers what settings need to know of nodes.
func (r *Reader) Nodes(context.Context) (settings.Nodes, error) { return nil, nil }
